/** Stores a whole row: the last logical index of the tensor runs over `length`. Elements where `when` does not hold are left alone. */
import type { Expr } from '../expr.js'
import type { Construct, Looped } from './construct.js'
import { mapWhen, printWhen, whenOf } from './when.js'

export interface StoreRow extends Looped {
  readonly kind: 'storeRow'
  readonly tensor: string
  readonly rows: readonly Expr[]
  /** A condition of each element. */
  readonly when?: Expr
}

export const storeRowConstruct: Construct<StoreRow> = {
  traits: { makes: 'output', elements: 'each', walk: 'shared' },
  defines: () => [],
  rename: (s) => s,
  rowExprs: ({ rows, length }) => [...rows, length],
  elementExprs: (s) => [...whenOf(s), s.value],
  map: (s, map) => ({ ...s, rows: s.rows.map(map), length: map(s.length), value: map(s.value), ...mapWhen(s, map) }),
  evaluate(s, run) {
    const holds = s.when === undefined ? undefined : run.element(s.index, s.when)
    run.writeRow(s.tensor, s.rows.map(run.number), run.number(s.length), run.element(s.index, s.value), holds)
  },
  print: (s, text) => {
    const at = [...s.rows.map(text.expr), s.index].join(', ')
    return `${s.tensor}[${at}] = ${text.expr(s.value)} for ${text.loop(s)}${printWhen(s, text)}`
  },
  verify(s, check) {
    for (const at of [...s.rows, s.length]) check.index(at)
    check.store(s.tensor, s.rows.length + 1, check.element(s.index, s.value))
    if (s.when !== undefined && check.element(s.index, s.when) !== 'bool') check.fail('a condition is no boolean')
  },
}
