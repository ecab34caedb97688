/**
 * Two row values of `count` elements: the largest values of a row, largest first, and `indices`, their positions in it
 * (src/ir/top_k.ts defines the order). All threads of the row compute them together; `count` is a number, or a dimension that instances fix.
 */
import type { Expr } from '../expr.js'
import { rankValues } from '../top_k.js'
import type { Construct, Looped } from './construct.js'

export interface TopK extends Looped {
  readonly kind: 'topK'
  readonly name: string
  readonly indices: string
  readonly count: Expr
}

export const topKConstruct: Construct<TopK> = {
  traits: { makes: 'rows', elements: 'combined', walk: 'shared', alone: 'ranks a row' },
  defines: ({ name, indices }) => [
    { kind: 'row', name, type: 'f32' },
    { kind: 'row', name: indices, type: 'i32' },
  ],
  rename: (s, name) => ({ ...s, name: name(s.name), indices: name(s.indices) }),
  rowExprs: ({ count, length }) => [count, length],
  elementExprs: ({ value }) => [value],
  map: (s, map) => ({ ...s, count: map(s.count), length: map(s.length), value: map(s.value) }),
  evaluate(s, run) {
    const ranking = rankValues(run.number(s.count), run.number(s.length), run.elementNumber(s.index, s.value))
    run.setRow(s.name, ranking.values)
    run.setRow(s.indices, ranking.indices)
  },
  print: (s, text) => `rows ${s.name}, ${s.indices} = top ${text.operand(s.count)}(${text.loop(s)}: ${text.expr(s.value)})`,
  verify(s, check) {
    for (const at of [s.count, s.length]) check.index(at)
    if (check.element(s.index, s.value) !== 'f32') check.fail('only floats are ranked')
  },
}
