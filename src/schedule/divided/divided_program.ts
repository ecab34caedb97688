/**
 * Programs whose iterations threads divide. In a column program, a thread owns a chunk of neighbouring columns and shares its rows with other threads
 * (column_reductions.ts); in a program of totals, blocks divide the chunks of a tensor (full_reductions.ts).
 */
import type { DType } from '../../ir/dtype.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import type { RowAxis, StmtOf } from '../../ir/kernel.js'
import type { Loop } from '../normalise/normal.js'
import { contains, usesIndex } from '../normalise/rewrite.js'
import { type Reduced, resultsOf } from './reduction.js'

/** Consecutive elements, read as a chunk: columns of one row, or elements along the innermost loop. */
export interface ChunkLoad {
  readonly name: string
  readonly load: ExprOf<'load'>
  readonly dtype: DType
  /** True if rows are contiguous, so that all chunks are full and aligned if the first is and rows are multiples of a chunk. */
  readonly isWhole: boolean
}

export interface DividedPass {
  readonly kind: 'pass'
  /** Outermost first: the rows of columns, or the loops of a tensor, of which chunks lie along the last. */
  readonly loops: readonly Loop[]
  readonly loads: readonly ChunkLoad[]
  /** Of every column, or of the tensor; loads of chunks in their values are elements of rows that have the names of the loads. */
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
  readonly loops: readonly Loop[]
  readonly loads: readonly ChunkLoad[]
  readonly stores: readonly ColumnStore[]
}

/** A step: a walk over rows or a tensor, or what is computed once, of each column. */
export type DividedStep = DividedPass | ColumnStores | StmtOf<'let'> | StmtOf<'store'>

export interface ColumnProgram {
  readonly kind: 'columns'
  /** The axis a chunk runs along. */
  readonly column: RowAxis
  /** Its extent. */
  readonly length: Expr
  /** Parts the rows are divided into: what a thread adds up apart, or the blocks of a cluster. It fixes the order of combination. */
  readonly parts: number
  /** Chunks of each part that a thread loads before it needs the first. */
  readonly each: number
  readonly sequence: readonly DividedStep[]
}

export interface TotalProgram {
  readonly kind: 'totals'
  /** Scalars that are known before, one pass, and statements over its totals. */
  readonly sequence: readonly DividedStep[]
}

export type DividedProgram = ColumnProgram | TotalProgram

export const passesOf = ({ sequence }: Pick<DividedProgram, 'sequence'>): readonly DividedPass[] =>
  sequence.flatMap((step) => (step.kind === 'pass' ? [step] : []))

/** True for columns that are reduced in one walk, whose rows blocks of the whole grid may divide: the last of them goes on. */
export const hasSections = ({ sequence }: ColumnProgram): boolean =>
  passesOf({ sequence }).length === 1 && sequence.every(({ kind }) => kind !== 'stores')

/** True for columns that are stored and not reduced. */
export const storesAlone = (program: ColumnProgram): boolean => passesOf(program).length === 0

/** The pass of a program of totals. */
export function walkOf(program: TotalProgram): DividedPass {
  const [pass] = passesOf(program)
  if (pass === undefined) throw new Error('internal: a program of totals walks over nothing')
  return pass
}

/** True if a program of totals loads every element that it walks over in chunks, and none by itself. */
export function loadsChunks(program: TotalProgram): boolean {
  const { loops, reductions } = walkOf(program)
  const isAlone = (node: Expr): boolean => node.kind === 'load' && loops.some(({ index }) => usesIndex(node, index))
  return reductions.every(({ values }) => values.every((value) => !contains(value, isAlone)))
}

/** The names a program gives, in order. */
export const programNames = ({ sequence }: Pick<DividedProgram, 'sequence'>): readonly string[] =>
  sequence.flatMap((step) => {
    if (step.kind === 'let') return [step.name]
    if (step.kind === 'store') return []
    const reductions = step.kind === 'pass' ? step.reductions : []
    const results = reductions.flatMap(({ stmt }) => resultsOf(stmt))
    return [...step.loops.map(({ index }) => index), ...step.loads.map(({ name }) => name), ...results.map(({ name }) => name)]
  })
