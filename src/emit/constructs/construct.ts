/**
 * How a construct is written as CUDA text. One that runs once a row is a line; one that runs in a pass says what stands before the pass,
 * around its chunks, at each element and behind it. Lines are asked for in the order of the text, each once.
 */
import type { Pass } from '../../schedule/passes.js'
import type { PassContext } from '../context.js'

/** The pass that is being written. */
export interface Frame {
  readonly context: PassContext
  readonly pass: Pass
  /** Text of the first element index of the chunk. */
  readonly first: string
  /** Every computation of an element stands behind the check that the element exists. */
  readonly guarded: boolean
}

type Lines = () => readonly string[]

/** The parts of a statement's text. */
export interface Written {
  /** Before the pass: what outlives a chunk. */
  readonly declare?: Lines
  /** Before the elements of a chunk. */
  readonly openChunk?: Lines
  /** For each element that exists. */
  readonly element?: Lines
  /** For each element, whether or not it exists: what `openChunk` declared has a place for it. */
  readonly anyElement?: Lines
  /** After the elements of a chunk. */
  readonly leaveChunk?: Lines
  /** After everything that leaves a chunk. */
  readonly closeChunk?: Lines
  /** After the pass; later passes read what it makes. */
  readonly finish?: Lines
}

/** The text of what runs in a pass. */
export interface PassText<S> {
  /** The device header that the text needs besides kernel.cuh. */
  readonly header?: string
  /** Takes up a statement: gives its variables names. */
  write(stmt: S, frame: Frame): Written
}

/** The text of what runs once a row: one line. */
export interface RowText<S> {
  readonly header?: string
  write(stmt: S, context: PassContext): string
}
