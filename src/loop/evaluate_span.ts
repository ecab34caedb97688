/** Spans of windows, as the loop IR is evaluated: a lane's chunk and the elements beside it, of which those that do not exist are 0. */
import type { Value } from '../ir/constructs/construct.js'
import { evaluateExpr } from '../ir/evaluate.js'
import { enterElement, type Lane, newRegisters } from './evaluate_lane.js'
import type { Copy, Span } from './ir.js'

/** Loads a chunk with the elements beside it. @throws internal error for a chunk that is not full and has no check */
export function copySpan(
  { load, access, guard, length }: Copy,
  span: Span,
  lane: Lane,
  { vec, isWhole }: { readonly vec: number; readonly isWhole: boolean },
): void {
  const { first, valid, env } = lane
  const extent = Number(evaluateExpr(length, env))
  if (isWhole && valid < vec) throw new Error('internal: a span of a chunk that is not full has no check')
  const found = new Map<number, Value>()
  if (guard === undefined || evaluateExpr(guard, env) === true)
    for (let at = Math.max(0, first - span.before); at < Math.min(first + vec + span.after, extent); at++) {
      enterElement(access.index, at, lane)
      found.set(at, evaluateExpr(load, env))
    }
  for (const { row, shift } of span.rows) {
    const values = newRegisters()
    for (let at = first; at < first + Math.min(valid, vec); at++) values[at] = found.get(at + shift) ?? 0
    lane.rows.set(row, values)
  }
}
