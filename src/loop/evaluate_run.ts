/** A run of the loop IR, and what every node of it needs: values of a lane, its registers, and the elements of its chunk. */

import type { Value } from '../ir/constructs/construct.js'
import { evaluateExpr } from '../ir/evaluate.js'
import type { Expr } from '../ir/expr.js'
import type { Lane, Row, Team } from './evaluate_lane.js'
import type { TileMemory } from './evaluate_tiles.js'

export interface Run {
  readonly team: Team
  readonly row: Row
  readonly all: readonly Lane[]
  /** True in the version for whole rows. */
  readonly whole: boolean
  /** Places of the elements of a lane's chunk. */
  readonly spread: Spread
  /** Rows in shared memory that are not published yet. */
  readonly pending: Map<string, Value[]>
  /** Tiles in shared memory. */
  readonly tiles: Map<string, TileMemory>
}

/** Runs of `run` elements of a chunk, of which each begins `step * run` elements after the one before. */
export interface Spread {
  readonly step: number
  readonly run: 1 | 2
}

export const consecutive: Spread = { step: 1, run: 1 }

/** Distance of element i from the first of its chunk. */
export const placeAt = (i: number, { step, run }: Spread): number => Math.floor(i / run) * run * step + (i % run)

/** Elements of a chunk that exist if `left` elements of the row are left from its first on. Runs are whole. */
export const validAt = (left: number, { step, run }: Spread): number => Math.ceil(left / (step * run)) * run

export const value = (e: Expr, lane: Lane): Value => evaluateExpr(e, lane.env)
export const number = (e: Expr, lane: Lane): number => Number(value(e, lane))

export const holds = (when: Expr | undefined, lane: Lane): boolean => when === undefined || value(when, lane) === true

/** First element of a chunk: `step` chunks share the elements of one tile. */
export const firstAt = (chunk: number, vec: number, { step, run }: Spread): number =>
  Math.floor(chunk / step) * step * vec + (chunk % step) * (step === 1 ? vec : run)

export function known<T>(found: T | undefined, name: string): T {
  if (found === undefined) throw new Error(`internal: ${name} is not declared`)
  return found
}

export const registers = (name: string, { rows }: Lane): Value[] => known(rows.get(name), name)

/** Calls `f` for the elements of a chunk that exist. */
export function forChunk(
  { first, valid }: Pick<Lane, 'first' | 'valid'>,
  whole: boolean,
  run: Run,
  f: (at: number) => void,
): void {
  const { vec } = run.team
  if (whole && run.whole && valid < vec) throw new Error('internal: a chunk that is not full is accessed without a check')
  for (let i = 0; i < Math.min(valid, vec); i++) f(first + placeAt(i, run.spread))
}
