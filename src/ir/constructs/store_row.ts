/**
 * Stores a whole row: the last logical index of the tensor runs over `length`, or the index of another axis if rows along that axis are
 * replaced in place. Elements for which `when` does not hold are left alone.
 */
import { call } from '../build.js'
import type { Expr } from '../expr.js'
import type { Construct, Looped } from './construct.js'
import { mapWhen, printWhen, whenOf } from './when.js'

export interface StoreRow extends Looped {
  readonly kind: 'storeRow'
  readonly tensor: string
  readonly rows: readonly Expr[]
  /** Condition per element. */
  readonly when?: Expr
  /** Position of the running index among the tensor's indices, if it is not the last. */
  readonly axis?: number
  /** Place of the first element, if it is not the first of the tensor's row: a schedule stores a row in pieces. */
  readonly from?: Expr
}

/** All indices of an element at `at`. */
export const indicesOfRow = ({ rows, axis, from }: Pick<StoreRow, 'rows' | 'axis' | 'from'>, at: Expr): readonly Expr[] => {
  const place = axis ?? rows.length
  return [...rows.slice(0, place), from === undefined ? at : call('add', from, at), ...rows.slice(place)]
}

export const storeRowConstruct: Construct<StoreRow> = {
  traits: { makes: 'output', elements: 'each', walk: 'shared' },
  defines: () => [],
  rename: (s) => s,
  rowExprs: ({ rows, length, from }) => [...rows, length, ...(from === undefined ? [] : [from])],
  elementExprs: (s) => [...whenOf(s), s.value],
  map: (s, map) => ({
    ...s,
    rows: s.rows.map(map),
    length: map(s.length),
    value: map(s.value),
    ...mapWhen(s, map),
    ...(s.from === undefined ? {} : { from: map(s.from) }),
  }),
  evaluate(s, run) {
    if (s.axis !== undefined || s.from !== undefined) {
      const rows = s.rows.map(run.number)
      const from = s.from === undefined ? 0 : run.number(s.from)
      const element = run.element(s.index, s.value)
      const values = Array.from({ length: run.number(s.length) }, (_, at) => element(at))
      for (const [at, value] of values.entries()) run.write(s.tensor, rows.toSpliced(s.axis ?? rows.length, 0, from + at), value)
      return
    }
    const holds = s.when === undefined ? undefined : run.element(s.index, s.when)
    run.writeRow(s.tensor, s.rows.map(run.number), run.number(s.length), run.element(s.index, s.value), holds)
  },
  print: (s, text) => {
    const at = s.rows
      .map(text.expr)
      .toSpliced(s.axis ?? s.rows.length, 0, s.from === undefined ? s.index : `${text.expr(s.from)} + ${s.index}`)
      .join(', ')
    return `${s.tensor}[${at}] = ${text.expr(s.value)} for ${text.loop(s)}${printWhen(s, text)}`
  },
  verify(s, check) {
    for (const at of [...s.rows, s.length, ...(s.from === undefined ? [] : [s.from])]) check.index(at)
    check.store(s.tensor, s.rows.length + 1, check.element(s.index, s.value))
    if (s.when !== undefined && check.element(s.index, s.when) !== 'bool') check.fail('a condition is not a boolean')
  },
}
