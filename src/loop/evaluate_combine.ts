/** Combinations of the elements that lanes have collected, as the loop IR is evaluated: each element of the row must be there once. */

import { evaluateExpr } from '../ir/evaluate.js'
import { monoid as monoidNamed } from '../ir/monoids.js'
import { type Fields, identityOf, scanFields } from '../ir/user_monoid.js'
import { foldFields } from '../ir/user_recurrence.js'
import { type Collected, type Lane, newRegisters } from './evaluate_lane.js'
import { shiftedTotal } from './evaluate_shifted.js'
import type { Accumulator, Combine } from './ir.js'

/** Elements of all lanes, in order. @throws internal error if one is missing or there twice */
export function elementsOf(key: Accumulator | object, lanes: readonly Lane[]): readonly Collected[] {
  const all = lanes.flatMap(({ collected }) => [...collected].flatMap(([of, elements]) => (of === key ? elements : [])))
  const sorted = all.toSorted((a, b) => a.at - b.at)
  for (const [i, { at }] of sorted.entries())
    if (at !== i) throw new Error(`internal: element ${Math.min(at, i)} of a row is missing or collected twice`)
  return sorted
}

/** Totals of a column, by fields. @throws internal error if a row is collected twice */
export function totalOf(accumulator: Accumulator, lanes: readonly Lane[], column: number): Fields {
  const all = lanes.flatMap(({ collected }) => collected.get(accumulator) ?? []).filter((each) => each.column === column)
  const sorted = all.toSorted((a, b) => a.at - b.at)
  for (const [i, { at }] of sorted.entries())
    if (at === sorted[i + 1]?.at) throw new Error(`internal: row ${at} of column ${column} is collected twice`)
  return prefixesOf(accumulator, sorted, lanes).at(-1) ?? []
}

export function combineAccumulator({ accumulator, into }: Pick<Combine, 'accumulator' | 'into'>, lanes: readonly Lane[]): void {
  const elements = elementsOf(accumulator, lanes)
  const prefixes = accumulator.shift === undefined ? prefixesOf(accumulator, elements, lanes) : [shiftedTotal(accumulator, lanes)]
  if (accumulator.scan) {
    for (const { row, field } of accumulator.rows) {
      const values = newRegisters(prefixes.map((fields) => fields[field] ?? Number.NaN))
      for (const lane of lanes) lane.rows.set(row, values)
    }
    return
  }
  const total = prefixes.at(-1) ?? []
  for (const { env } of lanes) for (const [i, { name }] of into.entries()) env.values.set(name, total[i] ?? Number.NaN)
}

/** Combinations up to each element, by fields. */
function prefixesOf(
  { monoid, starts, scan }: Accumulator,
  elements: readonly Collected[],
  lanes: readonly Lane[],
): readonly Fields[] {
  const { length } = elements
  const value = (at: number): Fields => elements[at]?.values ?? []
  const number = (at: number): number => value(at)[0] ?? Number.NaN
  if (typeof monoid === 'string') {
    const { evaluate, scan: scanned } = monoidNamed(monoid)
    return (scan ? scanned(length, number) : [evaluate(length, number)]).map((total) => [total])
  }
  if (!('next' in monoid)) return length === 0 ? [identityOf(monoid)] : scanFields(monoid, length, value)
  const [lane] = lanes
  const start = starts.map((e) => (lane === undefined ? Number.NaN : Number(evaluateExpr(e, lane.env))))
  return foldFields(monoid, start, length, value)
}
