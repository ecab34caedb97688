/** A row value: `length` elements, of which element `index` is `value`. */
import type { ScalarType } from '../dtype.js'
import type { Expr } from '../expr.js'
import type { Construct, Looped, Value } from './construct.js'

export interface Row extends Looped {
  readonly kind: 'row'
  readonly name: string
  readonly type: ScalarType
  /** Capacity in elements of a row that is computed whole before anything is replaced in place (src/ir/update_buffered.ts). */
  readonly kept?: number
}

/** Largest length of a row in shared memory: a block in which each thread computes its own row has memory for that many elements. */
const longestShort = 64

/** True if a row is short enough for shared memory, where it can be read at any index. */
export const isShort = (length: Expr): boolean => length.kind === 'const' && Number(length.value) <= longestShort

export const rowConstruct: Construct<Row> = {
  traits: { makes: 'rows', elements: 'each', walk: 'where read' },
  defines: ({ name, type }) => [{ kind: 'row', name, type }],
  rename: (s, name) => ({ ...s, name: name(s.name) }),
  rowExprs: ({ length }) => [length],
  elementExprs: ({ value }) => [value],
  map: (s, map) => ({ ...s, length: map(s.length), value: map(s.value) }),
  evaluate(s, run) {
    const element = run.element(s.index, s.value)
    const length = run.number(s.length)
    const values: Value[] = []
    for (let at = 0; at < length; at++) values.push(element(at))
    run.setRow(s.name, values)
  },
  print: (s, text) =>
    `row ${s.name}: ${s.type} = [${text.loop(s)}: ${text.expr(s.value)}]${s.kept === undefined ? '' : `, kept whole, at most ${s.kept}`}`,
  verify(s, check) {
    check.index(s.length)
    check.says(s.name, s.type, check.element(s.index, s.value))
  },
}
