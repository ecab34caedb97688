/**
 * Device memory of a forward pass, compared with a lower bound: its weights and the two largest activations that are
 * alive at once, which one step reads and writes. The planner's arena should not be much larger than these two.
 */

import type { Program } from '../runtime/program.js'
import { type FlattenConfig, flatten } from '../runtime/program_flatten.js'
import type { Storage } from '../runtime/program_memory.js'
import { contextOf, type Session, type SessionContext } from '../runtime/session.js'

export type Footprint = Program['memory'] & {
  /** Weights and arena. */
  readonly peakBytes: number
  /** Sum of the two largest buffers of the arena during one step, for the step with the largest sum. */
  readonly twoLargestBytes: number
  /** `peakBytes` over weights and `twoLargestBytes`. */
  readonly ratio: number
}

/** Largest sum of two buffers that are alive during the same step. Weights and states are excluded. */
export function twoLargest(storages: readonly Storage[]): number {
  const buffers = storages.filter(({ weight, state, bytes }) => weight === undefined && state === undefined && bytes > 0)
  // Lifetimes are intervals, so buffers that are alive at once are alive at the start of the latest one.
  return buffers.reduce((most, { first }) => {
    const alive = buffers.filter((other) => other.first <= first && first <= other.last).map(({ bytes }) => bytes)
    const [largest = 0, second = 0] = alive.sort((a, b) => b - a)
    return Math.max(most, largest + second)
  }, 0)
}

/** Footprint of a program built from `config` in `session`. */
export function footprintOf(program: Program, session: Session, config: Omit<FlattenConfig, SessionContext>): Footprint {
  const largest = twoLargest(flatten({ ...config, ...contextOf(session) }).storages)
  const { memory } = program
  const peakBytes = memory.weightBytes + memory.arenaBytes
  return { ...memory, peakBytes, twoLargestBytes: largest, ratio: peakBytes / (memory.weightBytes + largest) }
}
