/**
 * A row of `bins` counts: element b is the number of integers of a row that equal b. Values outside [0, bins) are not counted. All threads
 * of the row count together, in memory for `most` bins; the counts may be read at any index. Counts that are only stored become a
 * histogram, which counts directly in the output.
 */
import type { Expr } from '../expr.js'
import { countValues } from '../monoids.js'
import type { Construct, Looped } from './construct.js'

/** Largest number of bins: 16 KiB of the shared memory of a block. */
export const mostBins = 4096

export interface Counts extends Looped {
  readonly kind: 'counts'
  readonly name: string
  readonly bins: Expr
  /** Upper bound of `bins`. */
  readonly most: number
}

export const countsConstruct: Construct<Counts> = {
  traits: { makes: 'rows', elements: 'combined', walk: 'shared', alone: 'counts a row' },
  defines: ({ name }) => [{ kind: 'row', name, type: 'i32' }],
  rename: (s, name) => ({ ...s, name: name(s.name) }),
  rowExprs: ({ bins, length }) => [bins, length],
  elementExprs: ({ value }) => [value],
  map: (s, map) => ({ ...s, bins: map(s.bins), length: map(s.length), value: map(s.value) }),
  evaluate: (s, run) =>
    run.setRow(s.name, countValues(run.number(s.bins), run.number(s.length), run.elementNumber(s.index, s.value))),
  print: (s, text) => `row ${s.name}: i32 = histogram(${text.loop(s)}: ${text.expr(s.value)}) of ${text.operand(s.bins)}`,
  verify(s, check) {
    check.index(s.bins)
    check.index(s.length)
    if (check.element(s.index, s.value) !== 'i32') check.fail('a histogram counts integers')
  },
}
