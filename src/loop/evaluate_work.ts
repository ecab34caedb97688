/** Division of a kernel's work, as the loop IR is evaluated: shares one after the other, each with lanes of its own, and lanes that return early. */
import { evaluateExpr } from '../ir/evaluate.js'
import type { Expr } from '../ir/expr.js'
import { countOf } from '../ir/row_axis.js'
import type { Interval, Sum } from '../schedule/divided/update_range.js'
import { type Lane, newLane, type Row, type Team } from './evaluate_lane.js'
import type { Digit, OnePiece, Work } from './ir.js'

const number = (e: Expr, { env }: Pick<Lane, 'env'>): number => Number(evaluateExpr(e, env))

const sumOf = (sum: Sum, lane: Pick<Lane, 'env'>): number =>
  sum.reduce((total, { sign, value }) => total + (sign === '-' ? -1 : 1) * number(value, lane), 0)

/** Runs every share of the work with new lanes. A thread that has a share is a team of one. */
export function eachShare(
  { owner, digits }: Work,
  row: Row,
  given: Team,
  run: (lanes: readonly Lane[], team: Team) => void,
): void {
  const team: Team = owner === 'thread' ? { ...given, lanes: 1, slots: 1, chunks: 1 } : given
  const host = newLane(0, row, {})
  const counts = digits.map((digit) => countOfDigit(digit, host, team))
  const shares = counts.reduce((all, count) => all * count, 1)
  for (let share = 0; share < shares; share++) {
    const lanes = Array.from({ length: team.lanes * (team.slots ?? 1) }, (_, id) => newLane(id, row, {}))
    let rest = share
    for (let i = digits.length - 1; i >= 0; i--) {
      const [digit, count = 1] = [digits[i], counts[i]]
      if (digit !== undefined) for (const lane of lanes) enterDigit(digit, rest % count, lane, team)
      rest = Math.floor(rest / count)
    }
    run(lanes, team)
  }
}

function countOfDigit(digit: Digit, host: Lane, team: Team): number {
  const size = (dim: string): number => host.env.dims[dim] ?? Number.NaN
  switch (digit.of) {
    case 'axis':
      return countOf(digit.axis, size)
    case 'slots': {
      const { axis, most } = digit.interval
      return Math.max(0, Math.min(countOf(axis, size), ...most.map((sum) => sumOf(sum, host))))
    }
    case 'chunks':
      return Math.ceil(number(digit.length, host) / (team.lanes * team.vec))
    case 'tiles':
      return Math.ceil(number(digit.length, host) / (team.tile?.[digit.side] ?? Number.NaN))
  }
}

function enterDigit(digit: Digit, at: number, lane: Lane, team: Team): void {
  switch (digit.of) {
    case 'axis':
      lane.env.values.set(digit.axis.index, at)
      return
    case 'slots':
      lane.slot = at
      return
    case 'chunks':
      lane.first = (at * team.lanes + (lane.id % team.lanes)) * team.vec
      lane.valid = number(digit.length, lane) - lane.first
      return
    case 'tiles':
      lane.env.values.set(tileOf(digit.index), at * (team.tile?.[digit.side] ?? Number.NaN))
  }
}

/** Name of the first place of a tile along an index. */
export const tileOf = (index: string): string => `tile of ${index}`

/** Sets the index of an interval to the place of the lane's slot, or ends the lane. */
export function narrow({ axis, bounds }: Interval, lane: Lane): void {
  const { env } = lane
  let [from, to] = [0, countOf(axis, (dim) => env.dims[dim] ?? Number.NaN)]
  for (const bound of bounds) {
    if (bound.kind === 'if') lane.done ||= evaluateExpr(bound.part, env) !== true
    else if (bound.kind === 'from') from = Math.max(from, sumOf(bound.place, lane))
    else to = Math.min(to, sumOf(bound.place, lane))
    lane.done ||= from >= to
    // Further bounds may read memory that is valid only in a nonempty interval.
    if (lane.done) return
  }
  lane.done = lane.slot >= to - from
  env.values.set(axis.index, from + lane.slot)
}

/** True if no piece ends in the lane's chunk, whose first element becomes known. */
export function liesInPiece({ index, bounds, when }: OnePiece, lane: Lane, { vec }: Team): boolean {
  lane.env.values.set(index, lane.first)
  if (when !== undefined && evaluateExpr(when, lane.env) !== true) return false
  return bounds.every((bound) => {
    const at = number(bound, lane)
    return at <= lane.first || at - lane.first >= vec
  })
}
