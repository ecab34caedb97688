/** A reduction by a declared monoid: one scalar per field, computed by all threads of the row together. */
import type { Expr } from '../expr.js'
import { identityOf, scanFields, type UserMonoid } from '../user_monoid.js'
import type { Check, Construct, Run, Text } from './construct.js'

export interface Merge {
  readonly kind: 'merge'
  /** One name per field. */
  readonly names: readonly string[]
  readonly monoid: UserMonoid
  readonly length: Expr
  readonly index: string
  /** Fields of an element. */
  readonly values: readonly Expr[]
}

type Merged = Pick<Merge, 'names' | 'monoid' | 'length' | 'index' | 'values'>

/** Inclusive prefix combinations of the elements. */
export function evaluateMerged({ monoid, length, index, values }: Merged, run: Run) {
  const elements = values.map((value) => run.elementNumber(index, value))
  return scanFields(monoid, run.number(length), (at) => elements.map((element) => element(at)))
}

/** Checks that the value of each field and its combination have the field's type. */
export function verifyMerged({ names, monoid, length, index, values }: Merged, check: Check): void {
  const { fields, left, right, combine } = monoid
  check.index(length)
  for (const list of [names, values, left, right, combine])
    if (list.length !== fields.length) check.fail(`a monoid of ${fields.length} fields has ${list.length} of something`)
  fields.forEach(({ name, type }, i) => {
    const [value, made] = [values[i], combine[i]]
    if (value !== undefined) check.says(name, type, check.element(index, value))
    if (made !== undefined) check.says(name, type, made.type)
  })
}

export const printMerged = ({ names, values, index, length }: Merged, text: Text): string =>
  `(${names.join(', ')}) = (${text.loop({ index, length })}: ${values.map(text.expr).join(', ')})`

export const mapMerged = <S extends Merged>(s: S, map: (expr: Expr) => Expr): S => ({
  ...s,
  length: map(s.length),
  values: s.values.map(map),
})

export const mergeConstruct: Construct<Merge> = {
  traits: { makes: 'scalar', elements: 'combined', walk: 'shared' },
  defines: ({ names, monoid }) => names.map((name, i) => ({ kind: 'local', name, type: monoid.fields[i]?.type ?? 'f32' })),
  rename: (s, name) => ({ ...s, names: s.names.map(name) }),
  rowExprs: ({ length }) => [length],
  elementExprs: ({ values }) => values,
  map: mapMerged,
  evaluate(s, run) {
    const last = evaluateMerged(s, run).at(-1) ?? identityOf(s.monoid)
    for (const [i, name] of s.names.entries()) run.setLocal(name, last[i] ?? Number.NaN)
  },
  print: (s, text) => `merge ${printMerged(s, text)}`,
  verify: verifyMerged,
}
