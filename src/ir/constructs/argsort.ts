/**
 * The permutation that sorts a row in ascending order (src/ir/argsort.ts defines the order). All threads of a block compute it
 * together, in memory for `most` elements; it may be read at any index.
 */
import { sortPlaces } from '../argsort.js'
import type { Construct, Looped } from './construct.js'

export interface Argsort extends Looped {
  readonly kind: 'argsort'
  readonly name: string
  /** Largest length of the row. */
  readonly most: number
}

export const argsortConstruct: Construct<Argsort> = {
  traits: { makes: 'rows', elements: 'combined', walk: 'shared', alone: 'sorts a row' },
  defines: ({ name }) => [{ kind: 'row', name, type: 'i32' }],
  rename: (s, name) => ({ ...s, name: name(s.name) }),
  rowExprs: ({ length }) => [length],
  elementExprs: ({ value }) => [value],
  map: (s, map) => ({ ...s, length: map(s.length), value: map(s.value) }),
  evaluate: (s, run) => run.setRow(s.name, sortPlaces(run.number(s.length), run.elementNumber(s.index, s.value))),
  print: (s, text) => `row ${s.name}: i32 = argsort(${text.loop(s)}: ${text.expr(s.value)}) of at most ${s.most}`,
  verify(s, check) {
    check.index(s.length)
    if (check.element(s.index, s.value) === 'bool') check.fail('only numbers are sorted')
  },
}
