/**
 * CUDA source of a construct. A construct that runs once per row is one line. One that runs in a pass has lines before the pass, around its chunks,
 * at each element and after the pass. Lines are requested in source order, each once.
 */
import type { Pass } from '../../schedule/passes.js'
import type { PassContext } from '../context.js'

/** The pass being emitted. */
export interface Frame {
  readonly context: PassContext
  readonly pass: Pass
  /** Source of the first element index of the chunk. */
  readonly first: string
  /** True if every computation of an element is guarded by the check that the element exists. */
  readonly guarded: boolean
}

type Lines = () => readonly string[]

/** Parts of a statement's source. */
export interface Written {
  /** Before the pass: variables that outlive a chunk. */
  readonly declare?: Lines
  /** Before the elements of a chunk. */
  readonly openChunk?: Lines
  /** For each element that exists. */
  readonly element?: Lines
  /** For each element, whether or not it exists: the variables of `openChunk` have a slot for it. */
  readonly anyElement?: Lines
  /** After the elements of a chunk. */
  readonly leaveChunk?: Lines
  /** After all values have left a chunk. */
  readonly closeChunk?: Lines
  /** After the pass; later passes read the results. */
  readonly finish?: Lines
}

/** Source of a statement that runs in a pass. */
export interface PassText<S> {
  /** Device header that the source needs besides kernel.cuh. */
  readonly header?: string
  /** Begins a statement: names its variables. */
  write(stmt: S, frame: Frame): Written
}

/** Source of a statement that runs once per row: one line. */
export interface RowText<S> {
  readonly header?: string
  write(stmt: S, context: PassContext): string
}
