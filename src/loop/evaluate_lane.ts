/** Lanes of a team, as the loop IR is evaluated, and the row that they run. */
import type { Value } from '../ir/constructs/construct.js'
import type { Env, HostTensor } from '../ir/evaluate.js'
import type { Numbers } from '../ir/evaluate_expr.js'
import type { Accumulator, Search } from './ir.js'

/** An element that a lane has collected. */
export interface Collected {
  /** Its place among those that are combined. */
  readonly at: number
  /** Its column, if each column has an accumulator of its own. */
  readonly column?: number
  readonly values: readonly number[]
}

/** A row to run. */
export interface Row {
  readonly dims: Numbers
  readonly attrs: Numbers
  readonly tensors: Readonly<Record<string, HostTensor>>
  /** Values of the axes' indices. */
  readonly point: Numbers
  /** Stores an element of an output. */
  readonly store: (tensor: string, indices: readonly number[], value: Value) => void
}

/** One lane. */
export interface Lane {
  readonly id: number
  readonly env: Env
  readonly rows: Map<string, Value[]>
  /** Elements of accumulators and searches, by the statement that collects them. */
  readonly collected: Map<Accumulator | Search['stmt'], Collected[]>
  /** First element of the lane's chunk, the number of elements from there on, and the current element. */
  first: number
  valid: number
  at: number
  /** Row of the current iteration of slots, or elements before the innermost loop of a grid. */
  order: number
}

/** Registers for elements by their index in the row. Those beyond its end hold anything. */
export function newRegisters(values: readonly Value[] = []): Value[] {
  const made = [...values]
  made.length = 2 ** 31
  return made
}
