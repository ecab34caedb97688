/** What scheduling produces: a kernel with its passes, its vector width, and the teams of threads and register budgets of its variants. */
import type { Expr } from '../ir/expr.js'
import type { Instance } from '../ir/instance.js'
import type { RowAxis } from '../ir/kernel.js'
import type { ColumnProgram } from './column_program.js'
import type { Interval } from './interval.js'
import type { Step } from './passes.js'
import type { Staging } from './stage.js'
import type { TotalProgram } from './totals.js'

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
  /** What a measured variant is limited to besides: where it was measured. */
  readonly tuned?: TunedFor
}

/** Where a measurement holds. */
export interface TunedFor {
  /** `sm_90`, or `simt`. The CPU device takes the variants of every architecture, so that what a GPU would run is checked. */
  readonly architecture: string
  /** The one row length. */
  readonly length: number
  /** Fewest rows. */
  readonly fromRows: number
}

/** One compiled kernel of a row program. The launcher takes the first whose limit holds. */
export interface Variant {
  readonly name: string
  readonly team: Team
  /** Row values stay in registers, `chunks` chunks a lane; undefined when each pass reads and computes them again. */
  readonly chunks: number | undefined
  /** Consecutive elements a lane handles at a time, where they are not the kernel's `vec`. */
  readonly vec?: number
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
  /** What a chunk that lies in one piece of its row is computed by instead, where that loads more of it at once. */
  readonly pieces?: PieceSteps
  /** The axis that threads go over in part only. */
  readonly interval?: Interval
  /** Measured variants, which the launcher tries first. */
  readonly tuned?: readonly ElementwiseVariant[]
  /** Loads that blocks make for tiles of the loop and one axis. */
  readonly staging?: Staging
}

/** Steps for chunks in which no piece ends (src/schedule/pieces.ts). */
export interface PieceSteps {
  /** Stands for the chunk's first element. */
  readonly index: string
  /** Where pieces end. */
  readonly bounds: readonly Expr[]
  readonly steps: readonly Step[]
}

/** An elementwise kernel with a width and a block size of its own. */
export interface ElementwiseVariant {
  readonly name: string
  readonly vec: number
  readonly threads: number
  readonly limit: Limit
  readonly reason: string
}

/** Rows computed by teams of threads. */
export interface RowProgram {
  readonly kind: 'rows'
  /** Steps when row values are kept in registers between passes. */
  readonly kept: readonly Step[]
  /** Steps when each pass computes the row values it needs again. */
  readonly reread: readonly Step[]
  /** The axis of which teams take rows in part only. */
  readonly interval?: Interval
  /** Lengths of all loops, or bounds of them, the longest of which decides the variant; undefined when only the row itself knows them. */
  readonly lengths: readonly Expr[] | undefined
  readonly variants: readonly Variant[]
}

/** The steps of a program that names are taken from; those of columns are of a kind of their own. */
export const stepsOf = ({ program }: Pick<MappedKernel, 'program'>): readonly Step[] =>
  program.kind === 'rows' ? program.kept : program.kind === 'elementwise' ? program.steps : []

export interface MappedKernel {
  readonly instance: Instance
  /** Names the generated file, the launcher and the manifest entry. */
  readonly key: string
  /** The axes one row (elementwise: one row of chunks) is an element of, outermost first. */
  readonly axes: readonly RowAxis[]
  /** Of these, the one neighbouring threads of an elementwise kernel run along, where that is not the row of chunks. */
  readonly across?: RowAxis | undefined
  /** Consecutive elements a thread handles at a time. */
  readonly vec: number
  /** Kernels take their width (elementwise: their block size too) as a template argument, since variants differ in it. */
  readonly generic?: boolean
  readonly program: ElementwiseProgram | RowProgram | ColumnProgram | TotalProgram
  readonly split?: Split
}

/** The launches in front of a kernel that is the last of several. They leave in scratch memory what later ones read. */
export interface Split {
  /** The instance that all launches compute together. */
  readonly whole: Instance
  /** In order. Outputs of each are scratch. */
  readonly before: readonly MappedKernel[]
}

/** The instance that a mapped kernel was made of. */
export const wholeOf = ({ instance, split }: Pick<MappedKernel, 'instance' | 'split'>): Instance => split?.whole ?? instance

/** The axis that a kernel goes over in part only. */
export const intervalIn = ({ program }: Pick<MappedKernel, 'program'>): Interval | undefined =>
  program.kind === 'elementwise' || program.kind === 'rows' ? program.interval : undefined
