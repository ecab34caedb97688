/** Sums that are shifted by a running maximum, as the loop IR is evaluated: each lane scales its sums, and its total is combined with those of others. */
import { combined, type Fields, identityOf, scaledTo, type UserMonoid } from '../ir/user_monoid.js'
import type { Lane, ShiftedState } from './evaluate_lane.js'
import type { Accumulate, Accumulator } from './ir.js'

/** The least finite float32. */
const lowest = -(2 ** 128 - 2 ** 104)

interface Owned {
  readonly monoid: UserMonoid
  readonly shift: NonNullable<UserMonoid['shift']>
}

function ownOf({ monoid, name }: Accumulator): Owned {
  if (typeof monoid === 'string' || 'next' in monoid || monoid.shift === undefined)
    throw new Error(`internal: ${name} is shifted by no maximum`)
  return { monoid, shift: monoid.shift }
}

function stateOf(accumulator: Accumulator, { shifted }: Lane): ShiftedState {
  const { monoid } = ownOf(accumulator)
  const empty = identityOf(monoid)
  const state = shifted.get(accumulator) ?? { total: empty, next: Number.NEGATIVE_INFINITY, chunk: empty.slice(1).map(() => 0) }
  shifted.set(accumulator, state)
  return state
}

/** Takes the element of a maximum, or the terms of sums. */
export function shiftedPart({ into, part }: Accumulate, values: readonly number[], lane: Lane): void {
  const state = stateOf(into, lane)
  if (part === 'maximum') state.next = Math.max(state.next, values[0] ?? Number.NaN)
  else {
    state.chunk = state.chunk.map((sum, i) => sum + (values[i] ?? Number.NaN))
    lane.collected.get(into)?.push({ at: lane.order + lane.at, values })
  }
}

/** Scales the sums of a lane to its largest element, and names what the terms of the chunk are shifted by. */
export function rescale(accumulator: Accumulator, lane: Lane): void {
  const { monoid, shift } = ownOf(accumulator)
  const state = stateOf(accumulator, lane)
  const top = Math.max(state.total[0] ?? Number.NaN, state.next)
  state.total = scaledTo(monoid, shift, state.total, top)
  lane.env.values.set(accumulator.shift ?? '', Math.max(top, lowest))
}

/** Adds the sums of a chunk. */
export function endChunk(accumulator: Accumulator, lane: Lane): void {
  if (accumulator.shift === undefined) return
  const state = stateOf(accumulator, lane)
  state.total = state.total.map((value, i) => (i === 0 ? value : value + (state.chunk[i - 1] ?? Number.NaN)))
  state.chunk = state.chunk.map(() => 0)
}

/** The total of all lanes. */
export function shiftedTotal(accumulator: Accumulator, lanes: readonly Lane[]): Fields {
  const { monoid } = ownOf(accumulator)
  return lanes.reduce<Fields>((total, lane) => combined(monoid, total, stateOf(accumulator, lane).total), identityOf(monoid))
}
