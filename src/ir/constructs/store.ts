/** Stores one scalar per row, where `when` holds. */
import type { Expr } from '../expr.js'
import type { Construct } from './construct.js'
import { mapWhen, printWhen, whenOf } from './when.js'

export interface Store {
  readonly kind: 'store'
  readonly tensor: string
  readonly indices: readonly Expr[]
  readonly value: Expr
  readonly when?: Expr
}

export const storeConstruct: Construct<Store> = {
  traits: { makes: 'output', elements: 'none', walk: 'none' },
  defines: () => [],
  rename: (s) => s,
  rowExprs: (s) => [...s.indices, ...whenOf(s), s.value],
  elementExprs: () => [],
  map: (s, map) => ({ ...s, indices: s.indices.map(map), value: map(s.value), ...mapWhen(s, map) }),
  evaluate(s, run) {
    if (s.when === undefined || run.value(s.when)) run.write(s.tensor, s.indices.map(run.number), run.value(s.value))
  },
  print: (s, text) => `${s.tensor}[${s.indices.map(text.expr).join(', ')}] = ${text.expr(s.value)}${printWhen(s, text)}`,
  verify(s, check) {
    for (const at of s.indices) check.index(at)
    check.store(s.tensor, s.indices.length, check.type(s.value))
    if (s.when !== undefined && check.type(s.when) !== 'bool') check.fail('a condition is not a boolean')
  },
}
