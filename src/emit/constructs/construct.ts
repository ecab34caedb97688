/**
 * CUDA source of a construct that lanes compute together by a function of the device library. One that runs once per row is one line. One that runs
 * in a pass has lines before the pass, around its chunks, at each element and after the pass. Lines are requested in source order, each once.
 */
import type { SearchPart } from '../../loop/ir.js'
import type { PassContext } from '../print/context.js'

/** The pass being printed. */
export interface Frame {
  readonly context: PassContext
  /** Source of the first element index of the chunk. */
  readonly first: string
}

/** Lines of a statement by its parts. */
export type Written = { readonly [part in SearchPart]?: () => readonly string[] }

/** Source of a statement that runs in a pass. */
export interface PassText<S> {
  /** Device header that the source needs besides kernel.cuh. */
  readonly header?: string
  /** Begins a statement: names its variables. */
  write(stmt: S, frame: Frame): Written
}

/** Source of a statement that runs once per row: one line. */
export interface RowText<S> {
  /** Device header that the source needs besides kernel.cuh. */
  header?(stmt: S): string | undefined
  write(stmt: S, context: PassContext): string
}
