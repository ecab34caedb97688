/** A column program: walks over rows by threads that each own a chunk of neighbouring columns. Found by `columnsOf`. */
import type { DType } from '../ir/dtype.js'
import type { Expr, ExprOf } from '../ir/expr.js'
import type { RowAxis, StmtOf } from '../ir/kernel.js'
import type { Loop } from './normal.js'
import { type Reduced, resultsOf } from './reduction.js'

/** Consecutive columns of one row, read as a chunk. */
export interface ColumnLoad {
  readonly name: string
  readonly load: ExprOf<'load'>
  readonly dtype: DType
  /** True if rows are contiguous, so that all chunks are full and aligned if the first is and rows are multiples of a chunk. */
  readonly isWhole: boolean
}

export interface ColumnPass {
  readonly kind: 'pass'
  readonly loop: Loop
  readonly loads: readonly ColumnLoad[]
  /** Of every column; loads of columns in their values are elements of rows that have the names of the loads. */
  readonly reductions: readonly Reduced[]
  /** Of a row: where it does not hold, the row is not loaded and counts nothing. It is the same for all columns. */
  readonly when?: Expr
}

/** An element of every row and column that is stored. */
export interface ColumnStore extends Pick<StmtOf<'store'>, 'tensor' | 'indices' | 'value'> {
  /** Columns leave in chunks: they lie side by side, in runs that chunks divide. */
  readonly inChunks: boolean
  /** As of a load. */
  readonly isWhole: boolean
}

/** A walk over rows that stores them, after the reductions that every element of a column reads. */
export interface ColumnStores {
  readonly kind: 'stores'
  /** Over the axis of rows, which no reduction depends on. */
  readonly loop: Loop
  readonly loads: readonly ColumnLoad[]
  readonly stores: readonly ColumnStore[]
}

/** A step of a column program: a walk over the rows, or what is computed once a column. */
export type ColumnStep = ColumnPass | ColumnStores | StmtOf<'let'> | StmtOf<'store'>

export interface ColumnProgram {
  readonly kind: 'columns'
  /** The axis a chunk runs along. */
  readonly column: RowAxis
  /** Its extent. */
  readonly length: Expr
  /** Parts the rows are dealt out to: what a thread adds up apart, or the blocks of a cluster. It fixes the order of combination. */
  readonly parts: number
  /** Chunks of each part that a thread loads before it needs the first. */
  readonly each: number
  readonly sequence: readonly ColumnStep[]
}

/** The names a column program gives, in order. */
export const columnProgramNames = ({ sequence }: Pick<ColumnProgram, 'sequence'>): readonly string[] =>
  sequence.flatMap((step) => {
    if (step.kind === 'let') return [step.name]
    if (step.kind === 'store') return []
    const reductions = step.kind === 'pass' ? step.reductions : []
    const results = reductions.flatMap(({ stmt }) => resultsOf(stmt))
    return [step.loop.index, ...step.loads.map(({ name }) => name), ...results.map(({ name }) => name)]
  })
