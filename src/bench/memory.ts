/**
 * What a forward pass keeps in device memory, beside the least it could: its weights and the two largest activations that are
 * alive at once, which one step reads and writes. The planner's arena should not be much more than these two.
 */

import type { Program } from '../runtime/program.js'
import { type FlattenConfig, flatten } from '../runtime/program_flatten.js'
import type { Storage } from '../runtime/program_memory.js'
import { contextOf, type Session, type SessionContext } from '../runtime/session.js'

export type Footprint = Program['memory'] & {
  /** Weights and arena. */
  readonly peakBytes: number
  /** The two largest buffers of the arena during one step, for the step where their sum is greatest. */
  readonly twoLargestBytes: number
  /** `peakBytes` over weights and `twoLargestBytes`. */
  readonly ratio: number
}

/** The greatest sum of two buffers that hold values during the same step. Weights and states do not count. */
export function twoLargest(storages: readonly Storage[]): number {
  const buffers = storages.filter(({ weight, state, bytes }) => weight === undefined && state === undefined && bytes > 0)
  // Lives are intervals, so whatever is alive at once is alive when the youngest of them begins.
  return buffers.reduce((most, { first }) => {
    const alive = buffers.filter((other) => other.first <= first && first <= other.last).map(({ bytes }) => bytes)
    const [largest = 0, second = 0] = alive.sort((a, b) => b - a)
    return Math.max(most, largest + second)
  }, 0)
}

/** The footprint of a program that was built from `config` in `session`. */
export function footprintOf(program: Program, session: Session, config: Omit<FlattenConfig, SessionContext>): Footprint {
  const largest = twoLargest(flatten({ ...config, ...contextOf(session) }).storages)
  const { memory } = program
  const peakBytes = memory.weightBytes + memory.arenaBytes
  return { ...memory, peakBytes, twoLargestBytes: largest, ratio: peakBytes / (memory.weightBytes + largest) }
}
