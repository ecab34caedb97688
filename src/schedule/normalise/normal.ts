/** Normal form of a kernel: made by `normalise`, read by the later passes of scheduling. */
import type { Looped } from '../../ir/constructs/construct.js'
import type { DType, ScalarType } from '../../ir/dtype.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import type { RowAxis, Stmt, StmtOf } from '../../ir/kernel.js'
import { freshName as fresh } from '../../ir/names.js'
import type { UserMonoid } from '../../ir/user_monoid.js'
import type { UserRecurrence } from '../../ir/user_recurrence.js'

/** Loop whose index all constructs of one length share. */
export interface Loop {
  readonly index: string
  readonly length: Expr
}

/** Place of an element in a group of `factor` consecutive ones, of which each step of a loop has one group: that of an interleaved access. */
export interface Interleaved {
  readonly factor: number
  readonly member: number
  /** Indices of the first member. */
  readonly first: readonly Expr[]
}

export type RowDef =
  /** Consecutive elements of a tensor, read in chunks. */
  | {
      readonly kind: 'loaded'
      readonly name: string
      readonly type: ScalarType
      readonly loop: Loop
      readonly load: ExprOf<'load'>
      readonly dtype: DType
      readonly run: number
      /** A row-uniform mask, known before any reduction. If it does not hold, no element is loaded or read. */
      readonly guard?: Expr
      /**
       * Distance of an element's place from that of the loop, in spans of windows. Elements beyond an end of the row, or where the guard does not
       * hold, are not loaded and are 0.
       */
      readonly shift?: number
      /** Set for a member of groups of elements, which are loaded together. */
      readonly interleaved?: Interleaved
    }
  | { readonly kind: 'computed'; readonly name: string; readonly type: ScalarType; readonly loop: Loop; readonly value: Expr }
  /** Combinations of the values up to each element. The threads of a row compute them together, chunk by chunk. */
  | {
      readonly kind: 'scanned'
      readonly name: string
      readonly type: ScalarType
      readonly monoid: StmtOf<'scan'>['monoid'] | UserMonoid | UserRecurrence
      readonly loop: Loop
      /** Initial values of a recurrence. */
      readonly starts?: readonly Expr[]
      /** Values of an element; one per field for a user monoid; the inputs of a step for a recurrence. */
      readonly values: readonly Expr[]
      /** Field that the row stores. */
      readonly field: number
    }

/** Values that must be known before a row's first element is computed. */
export const startsOf = (row: RowDef): readonly Expr[] => (row.kind === 'scanned' ? (row.starts ?? []) : [])

/** Expressions that a row's elements are computed from. */
export function rowExprs(row: RowDef): readonly Expr[] {
  if (row.kind === 'scanned') return row.values
  return [row.kind === 'loaded' ? row.load : row.value]
}

export interface Reduction {
  readonly kind: 'reduce'
  readonly name: string
  readonly type: ScalarType
  readonly monoid: StmtOf<'reduce'>['monoid']
  readonly loop: Loop
  readonly value: Expr
}

/** A reduction by a user monoid. */
export interface Merged {
  readonly kind: 'merge'
  readonly names: readonly string[]
  readonly monoid: UserMonoid
  readonly loop: Loop
  readonly values: readonly Expr[]
}

/** A store of one element per loop index. */
export interface LoopStore {
  readonly kind: 'loopStore'
  readonly tensor: string
  readonly indices: readonly Expr[]
  readonly loop: Loop
  readonly value: Expr
  /** A mask: elements where it does not hold are not stored, and their values are not computed. */
  readonly when?: Expr
  /** Length of the runs in which elements stored for consecutive indices are consecutive; undefined if they are not. */
  readonly run: number | undefined
  /** Set for a member of groups of elements, which are stored together. */
  readonly interleaved?: Interleaved
}

/** Counts of the integers of a row. `indices` address the count of `bin`, an index variable. */
export interface Histogram {
  readonly kind: 'histogram'
  readonly tensor: string
  readonly indices: readonly Expr[]
  readonly bin: string
  readonly bins: Expr
  readonly loop: Loop
  readonly value: Expr
}

/** Counts of the integers of a row, in shared memory, which any thread may read at any index. */
export interface CountedRow {
  readonly kind: 'counts'
  readonly name: string
  readonly bins: Expr
  /** Largest number of bins that there is memory for. */
  readonly most: number
  readonly loop: Loop
  readonly value: Expr
}

/** A scalar that the threads of a row compute in loops of their own. Its elements read no row, and their loads are not vectorised. */
export interface TeamScalar extends StmtOf<'team'> {
  readonly loop: Loop
}

/** Steps of a recurrence with row state. The lanes of a warp run them in a loop of their own, with the state in shared memory. */
export interface FoldedState extends StmtOf<'foldState'> {
  /** The longest row there is memory for. */
  readonly most: number
  /** Stores of each step: of the scalar of the step that `value` names. */
  readonly stores: readonly { readonly tensor: string; readonly indices: readonly Expr[]; readonly value: string }[]
}

/** The `count` largest elements of a row and their indices: two rows in shared memory, readable by any thread at any index. */
export interface Ranking {
  readonly kind: 'topK'
  readonly name: string
  /** The row of indices. */
  readonly indices: string
  readonly count: number
  readonly loop: Loop
  readonly value: Expr
}

/** Indices of a row's elements in ascending order of value: a row in shared memory, readable by any thread at any index. */
export interface SortedRow {
  readonly kind: 'argsort'
  readonly name: string
  /** The longest row there is memory for. */
  readonly most: number
  readonly loop: Loop
  readonly value: Expr
}

/**
 * A row in shared memory, computed once by the threads of the row. It is a short row that is expensive and read at other indices than its loop's,
 * or a row that is kept whole before it replaces its own inputs.
 */
export interface SharedRow {
  readonly kind: 'sharedRow'
  readonly name: string
  readonly type: ScalarType
  /** Capacity in elements: the length of its loop, or the maximum length of rows. */
  readonly length: number
  readonly loop: Loop
  readonly value: Expr
}

/** A store over a loop with all indices written out: the form of every store of a scalar or of a row. */
export interface WrittenStore extends Looped {
  readonly kind: 'writtenStore'
  readonly tensor: string
  readonly indices: readonly Expr[]
  readonly when?: Expr
}

/** A statement of the kernel while it is brought into normal form. */
export type Statement = Stmt | WrittenStore

/** Barrier after which the inputs that are replaced are no longer read. */
export interface Meeting {
  readonly kind: 'meet'
}

/** Statements that run once per row. */
export type RowStmt = StmtOf<'let'> | StmtOf<'store'> | TeamScalar | FoldedState | Meeting

/** Statements that run in a pass over their loop. */
export type PassStmt = Reduction | Merged | Histogram | CountedRow | Ranking | SortedRow | SharedRow | LoopStore

export type NormalStmt = RowStmt | PassStmt

/** Index variable of a chunk's first element, and the ends of pieces: values of dimensions and attributes. */
export interface Pieces {
  readonly index: string
  /** By key. */
  readonly bounds: Map<string, Expr>
  /** Conditions of stores, by key, with the scalars that name them. Loads for a store are made where its condition holds. */
  readonly conditions: Map<string, ExprOf<'local'>>
}

export interface NormalKernel {
  /** True if no statement combines elements, and every store runs over the same loop. */
  readonly elementwise: boolean
  readonly axes: readonly RowAxis[]
  /** The axis along which neighbouring threads of an elementwise kernel run, if it is not the loop. */
  readonly across: RowAxis | undefined
  readonly rows: ReadonlyMap<string, RowDef>
  /** Rows in shared memory, by name. */
  readonly shared: ReadonlyMap<string, Ranking | SortedRow | SharedRow | CountedRow | FoldedState>
  /** The loops of reductions and stores, each length once. */
  readonly loops: readonly Loop[]
  readonly statements: readonly NormalStmt[]
  /** Outputs whose memory the kernel also reads: they are stored after all reads are done. */
  readonly replaced: ReadonlySet<string>
  /** Operations for which the threads of a row wait before they replace memory: none, all reads, or also all passes. */
  readonly waits: 'no' | 'reads' | 'passes'
  /** True for a load that is proven in bounds, so that it may be made speculatively. */
  readonly inBounds: (load: ExprOf<'load'>) => boolean
  /** For chunks that lie in one piece of the row: the index of their first element, and the ends of pieces. */
  readonly pieces: Pieces | undefined
  /** Names already used, for later passes that need fresh ones. */
  readonly taken: Set<string>
  /** True if sums of indices have no names: their constants are distances between the places of windows. */
  readonly hasPlainSums: boolean
}

/** A fresh name of a scheduling pass: the wanted one, or `name_2` and so on. */
export const freshName = (wanted: string, taken: Set<string>): string => fresh(wanted, taken, { separator: '_' })
