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
  /** Distance from one element of a lane's chunk to the next. */
  readonly step: number
  /** Rows in shared memory that are not published yet. */
  readonly pending: Map<string, Value[]>
  /** Tiles in shared memory. */
  readonly tiles: Map<string, TileMemory>
}

export const value = (e: Expr, lane: Lane): Value => evaluateExpr(e, lane.env)
export const number = (e: Expr, lane: Lane): number => Number(value(e, lane))

export const holds = (when: Expr | undefined, lane: Lane): boolean => when === undefined || value(when, lane) === true

/** First element of a chunk, of which the elements are `step` apart: so many chunks share the elements of one tile. */
export const firstAt = (chunk: number, vec: number, step: number): number =>
  Math.floor(chunk / step) * step * vec + (chunk % step) * (step === 1 ? vec : 1)

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
  for (let i = 0; i < Math.min(valid, vec); i++) f(first + i * run.step)
}
