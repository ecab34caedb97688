/** The form of a kernel that scheduling works on: what `normalise` makes and the later passes read. */
import type { Looped } from '../ir/constructs/construct.js'
import type { DType, ScalarType } from '../ir/dtype.js'
import type { Expr, ExprOf } from '../ir/expr.js'
import type { RowAxis, Stmt, StmtOf } from '../ir/kernel.js'
import { freshName as fresh } from '../ir/names.js'
import type { UserMonoid } from '../ir/user_monoid.js'
import type { UserRecurrence } from '../ir/user_recurrence.js'

/** The index all constructs of one length share. */
export interface Loop {
  readonly index: string
  readonly length: Expr
}

export type RowDef =
  /** Consecutive elements of a tensor, read as chunks. */
  | {
      readonly kind: 'loaded'
      readonly name: string
      readonly type: ScalarType
      readonly loop: Loop
      readonly load: ExprOf<'load'>
      readonly dtype: DType
      readonly run: number
      /** A mask of the whole row, known before any reduction: where it does not hold nothing is loaded, and nothing reads the elements. */
      readonly guard?: Expr
    }
  | { readonly kind: 'computed'; readonly name: string; readonly type: ScalarType; readonly loop: Loop; readonly value: Expr }
  /** Combinations of the values up to each element: the threads of a row make them together, chunk by chunk. */
  | {
      readonly kind: 'scanned'
      readonly name: string
      readonly type: ScalarType
      readonly monoid: StmtOf<'scan'>['monoid'] | UserMonoid | UserRecurrence
      readonly loop: Loop
      /** Of a recurrence: what is carried in front of the first element. */
      readonly starts?: readonly Expr[]
      /** Of an element; by a monoid of the author's, one for each field; what a step of a recurrence takes. */
      readonly values: readonly Expr[]
      /** The field that the row is of. */
      readonly field: number
    }

/** What is known before a row's first element is computed. */
export const startsOf = (row: RowDef): readonly Expr[] => (row.kind === 'scanned' ? (row.starts ?? []) : [])

/** What a row's elements are computed of. */
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

/** A reduction by a monoid of the author's. */
export interface Merged {
  readonly kind: 'merge'
  readonly names: readonly string[]
  readonly monoid: UserMonoid
  readonly loop: Loop
  readonly values: readonly Expr[]
}

/** A store of one element for every loop index. */
export interface LoopStore {
  readonly kind: 'loopStore'
  readonly tensor: string
  readonly indices: readonly Expr[]
  readonly loop: Loop
  readonly value: Expr
  /** A mask: elements where it does not hold are not stored, and their values are not computed. */
  readonly when?: Expr
  /** The elements stored for consecutive indices are consecutive, in runs of `run`; undefined when they are not. */
  readonly run: number | undefined
}

/** Counts of the integers of a row. `indices` are those of the count of `bin`, an index variable. */
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
  /** The most bins there is memory for. */
  readonly most: number
  readonly loop: Loop
  readonly value: Expr
}

/** A scalar that the threads of a row search for in loops of their own: its key and weight read no row, loads are not vectorised. */
export interface Threshold {
  readonly kind: 'threshold'
  readonly name: string
  readonly target: Expr
  readonly loop: Loop
  readonly key: Expr
  readonly value: Expr
}

/** Steps that carry rows, made by the lanes of a warp in a loop of their own, with what they carry in shared memory. */
export interface FoldedState extends StmtOf<'foldState'> {
  /** The longest row there is memory for. */
  readonly most: number
  /** What each step stores: the scalar of it that `value` names. */
  readonly stores: readonly { readonly tensor: string; readonly indices: readonly Expr[]; readonly value: string }[]
}

/** The `count` largest elements of a row and their indices: two rows in shared memory, which any thread may read at any index. */
export interface Ranking {
  readonly kind: 'topK'
  readonly name: string
  /** The row of indices. */
  readonly indices: string
  readonly count: number
  readonly loop: Loop
  readonly value: Expr
}

/** The places of a row's elements in ascending order: a row in shared memory, which any thread may read at any index. */
export interface SortedRow {
  readonly kind: 'argsort'
  readonly name: string
  /** The longest row there is memory for. */
  readonly most: number
  readonly loop: Loop
  readonly value: Expr
}

/**
 * A row in shared memory, computed once by the threads of the row: a short one that is expensive and read at other indices than its loop's,
 * or one that is kept whole before it replaces what it is made of.
 */
export interface SharedRow {
  readonly kind: 'sharedRow'
  readonly name: string
  readonly type: ScalarType
  /** Elements there is memory for: those of its loop, or the most that rows may have. */
  readonly length: number
  readonly loop: Loop
  readonly value: Expr
}

/** A store over a loop whose indices are all written out: what a store of a scalar or of a row becomes. */
export interface WrittenStore extends Looped {
  readonly kind: 'writtenStore'
  readonly tensor: string
  readonly indices: readonly Expr[]
  readonly when?: Expr
}

/** A statement of the kernel while it is brought into normal form. */
export type Statement = Stmt | WrittenStore

/** Behind it, nobody reads any more what is replaced. */
export interface Meeting {
  readonly kind: 'meet'
}

/** What runs once a row. */
export type RowStmt = StmtOf<'let'> | StmtOf<'store'> | Threshold | FoldedState | Meeting

/** What runs in a pass over its loop. */
export type PassStmt = Reduction | Merged | Histogram | CountedRow | Ranking | SortedRow | SharedRow | LoopStore

export type NormalStmt = RowStmt | PassStmt

/** The first element of a chunk as an index, and where pieces end: values of dimensions and attributes. */
export interface Pieces {
  readonly index: string
  /** By key. */
  readonly bounds: Map<string, Expr>
  /** Conditions of stores, by key, and the scalars that name them: what is loaded for a store is loaded where its condition holds. */
  readonly conditions: Map<string, ExprOf<'local'>>
}

export interface NormalKernel {
  /** Nothing combines elements, and every store runs over the same loop. */
  readonly elementwise: boolean
  readonly axes: readonly RowAxis[]
  /** The axis neighbouring threads of an elementwise kernel run along, where it is not the loop. */
  readonly across: RowAxis | undefined
  readonly rows: ReadonlyMap<string, RowDef>
  /** Rows in shared memory, by name. */
  readonly shared: ReadonlyMap<string, Ranking | SortedRow | SharedRow | CountedRow | FoldedState>
  /** The loops of reductions and stores, each length once. */
  readonly loops: readonly Loop[]
  readonly statements: readonly NormalStmt[]
  /** Outputs whose memory the kernel reads as well: they are stored when nothing is read any more. */
  readonly replaced: ReadonlySet<string>
  /** What the threads of a row wait for before they replace anything: none, all reads, or all passes besides. */
  readonly waits: 'no' | 'reads' | 'passes'
  /** True for a load that is proven in bounds, so that it may be made speculatively. */
  readonly inBounds: (load: ExprOf<'load'>) => boolean
  /** Chunks that lie in one piece of the row: the index of their first element, and where pieces end. */
  readonly pieces: Pieces | undefined
  /** Names already given, for later passes that need fresh ones. */
  readonly taken: Set<string>
}

/** A name of a scheduling pass: the wanted one, or `name_2` and so on. */
export const freshName = (wanted: string, taken: Set<string>): string => fresh(wanted, taken, { separator: '_' })
