/** Lanes of a team, as the loop IR is evaluated, and the row that they run. */
import type { Value } from '../ir/constructs/construct.js'
import type { Env, HostTensor } from '../ir/evaluate.js'
import type { Numbers } from '../ir/evaluate_expr.js'
import type { Accumulator, Search } from './ir.js'
import type { TileShape } from './tile_layout.js'

/** An element that a lane has collected. */
export interface Collected {
  /** Its place among those that are combined. */
  readonly at: number
  /** Its column, if each column has an accumulator of its own. */
  readonly column?: number
  readonly values: readonly number[]
}

/** A team: its lanes, the chunks that each keeps in registers, and the elements of a chunk. */
export interface Team {
  readonly lanes: number
  /** Threads that share a chunk of columns. */
  readonly slots?: number
  readonly chunks: number
  readonly vec: number
  /** Sides of tiles. */
  readonly tile?: Pick<TileShape, 'rows' | 'columns' | 'isRun'>
}

/** A kernel to run. */
export interface Row {
  readonly dims: Numbers
  readonly attrs: Numbers
  readonly tensors: Readonly<Record<string, HostTensor>>
  /** True if axes are merged, so that an index may go on in the axis before. */
  readonly isMerged: boolean
  /** Stores an element of an output. */
  readonly store: (tensor: string, indices: readonly number[], value: Value) => void
}

/** A maximum with the sums that are shifted by it, the largest element since, and the sums of the current chunk. */
export interface ShiftedState {
  total: readonly number[]
  next: number
  chunk: readonly number[]
}

/** One lane. */
export interface Lane {
  readonly id: number
  readonly env: Env
  readonly rows: Map<string, Value[]>
  /** Elements of accumulators and searches, by the statement that collects them. */
  readonly collected: Map<Accumulator | Search['stmt'], Collected[]>
  /** State of sums that are shifted by a maximum. */
  readonly shifted: Map<Accumulator, ShiftedState>
  /** First element of the lane's chunk, the number of elements from there on, and the current element. */
  first: number
  valid: number
  at: number
  /** Row of the current iteration of slots, or elements before the innermost loop of a grid. */
  order: number
  /** True if it has returned. */
  done: boolean
  /** Slot of an interval. */
  slot: number
  /** Chunks that go on from one row of a tile to the next: the row in which they begin, and the length of rows. */
  run?: { readonly index: string; readonly row: number; readonly length: number }
}

export const newLane = (id: number, { dims, attrs, tensors, isMerged }: Row, point: Numbers): Lane => {
  const rows = new Map<string, Value[]>()
  const env = { dims, attrs, values: new Map<string, Value>(Object.entries(point)), rows, tensors, isMerged }
  return { id, env, rows, collected: new Map(), shifted: new Map(), first: 0, valid: 0, at: 0, order: 0, done: false, slot: 0 }
}

/** Sets the index of a loop to an element that is loaded or stored. In a run, elements after a row are those of the next. */
export function enterElement(index: string, at: number, { env: { values }, run }: Lane): void {
  values.set(index, run === undefined ? at : at % run.length)
  if (run !== undefined) values.set(run.index, run.row + Math.floor(at / run.length))
}

/** Registers for elements by their index in the row. Those beyond its end hold anything. */
export function newRegisters(values: readonly Value[] = []): Value[] {
  const made = [...values]
  made.length = 2 ** 31
  return made
}
