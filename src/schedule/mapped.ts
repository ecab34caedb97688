/** What scheduling produces: a kernel with the answer to who computes what, how wide, and where values live. */
import type { Expr } from '../ir/expr.js'
import type { Instance } from '../ir/instance.js'
import type { RowAxis } from '../ir/kernel.js'
import type { Step } from './passes.js'

/** The threads that compute one row together. */
export type Team =
  | { readonly kind: 'thread'; readonly rowsPerBlock: number }
  /** A power of two of neighbouring lanes of a warp. */
  | { readonly kind: 'warp'; readonly lanes: number; readonly rowsPerBlock: number }
  | { readonly kind: 'block'; readonly lanes: number }

/** A bound on a run-time extent, as the launcher tests it. */
export interface Limit {
  /** Longest row the variant takes; undefined when it takes any. */
  readonly length: number | undefined
  /** Most rows the variant takes; undefined when it takes any. */
  readonly rows: number | undefined
}

/** One compiled kernel of a row program. The launcher takes the first whose limit holds. */
export interface Variant {
  readonly name: string
  readonly team: Team
  /** Row values stay in registers, `chunks` chunks a lane; undefined when each pass reads and computes them again. */
  readonly chunks: number | undefined
  readonly limit: Limit
  /** Why rows within the limit are best served this way. */
  readonly reason: string
}

/** No value depends on another element of its row: each thread computes one chunk of one row. */
export interface ElementwiseProgram {
  readonly kind: 'elementwise'
  /** Scalars of the row, then exactly one pass. */
  readonly steps: readonly Step[]
  readonly threads: number
}

/** Rows computed by teams of threads. */
export interface RowProgram {
  readonly kind: 'rows'
  /** Steps when row values are kept in registers between passes. */
  readonly kept: readonly Step[]
  /** Steps when each pass computes the row values it needs again. */
  readonly reread: readonly Step[]
  /** Lengths of all loops, the longest of which decides the variant; undefined when only the row itself knows them. */
  readonly lengths: readonly Expr[] | undefined
  readonly variants: readonly Variant[]
}

export interface MappedKernel {
  readonly instance: Instance
  /** Names the generated file, the launcher and the manifest entry. */
  readonly key: string
  /** The axes one row (elementwise: one row of chunks) is an element of, outermost first. */
  readonly axes: readonly RowAxis[]
  /** Consecutive elements a thread handles at a time. */
  readonly vec: number
  readonly program: ElementwiseProgram | RowProgram
}
