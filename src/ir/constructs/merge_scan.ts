/**
 * An inclusive scan by a declared monoid: one row per field, computed by all threads of the
 * row together. Elements of these rows are read at the index of a loop over the row, and nowhere else.
 */

import type { Construct } from './construct.js'
import { evaluateMerged, type Merge, mapMerged, printMerged, verifyMerged } from './merge.js'

export interface MergeScan extends Omit<Merge, 'kind'> {
  readonly kind: 'mergeScan'
}

export const mergeScanConstruct: Construct<MergeScan> = {
  traits: { makes: 'rows', elements: 'combined', walk: 'where read', alone: 'scans by a monoid of its own' },
  defines: ({ names, monoid }) => names.map((name, i) => ({ kind: 'row', name, type: monoid.fields[i]?.type ?? 'f32' })),
  rename: (s, name) => ({ ...s, names: s.names.map(name) }),
  rowExprs: ({ length }) => [length],
  elementExprs: ({ values }) => values,
  map: mapMerged,
  evaluate(s, run) {
    const all = evaluateMerged(s, run)
    s.names.forEach((name, i) => {
      run.setRow(
        name,
        all.map((fields) => fields[i] ?? Number.NaN),
      )
    })
  },
  print: (s, text) => `scan ${printMerged(s, text)}`,
  verify: verifyMerged,
}
