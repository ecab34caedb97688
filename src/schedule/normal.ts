/** The form of a kernel that scheduling works on: what `normalise` makes and the later passes read. */
import type { Looped } from '../ir/constructs/construct.js'
import type { DType, ScalarType } from '../ir/dtype.js'
import type { Expr, ExprOf } from '../ir/expr.js'
import type { RowAxis, Stmt, StmtOf } from '../ir/kernel.js'
import { freshName as fresh } from '../ir/names.js'

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
      /** Known before any reduction: where it does not hold nothing is read, and elements have no value that anybody uses. */
      readonly guard?: Expr
    }
  | { readonly kind: 'computed'; readonly name: string; readonly type: ScalarType; readonly loop: Loop; readonly value: Expr }
  /** Combinations of the values up to each element: the threads of a row make them together, chunk by chunk. */
  | {
      readonly kind: 'scanned'
      readonly name: string
      readonly type: ScalarType
      readonly monoid: StmtOf<'scan'>['monoid']
      readonly loop: Loop
      readonly value: Expr
    }

export interface Reduction {
  readonly kind: 'reduce'
  readonly name: string
  readonly type: ScalarType
  readonly monoid: StmtOf<'reduce'>['monoid']
  readonly loop: Loop
  readonly value: Expr
}

/** A store of one element for every loop index. */
export interface LoopStore {
  readonly kind: 'loopStore'
  readonly tensor: string
  readonly indices: readonly Expr[]
  readonly loop: Loop
  readonly value: Expr
  /** Elements where it does not hold are left alone, and their values are not computed. */
  readonly when?: Expr
  /** The elements stored for consecutive indices are consecutive, in runs of `run`; undefined when they are not. */
  readonly run: number | undefined
}

/** Counts of the integers of a row: `indices` are those of the count of `bin`, the variable that is each of them in turn. */
export interface Histogram {
  readonly kind: 'histogram'
  readonly tensor: string
  readonly indices: readonly Expr[]
  readonly bin: string
  readonly bins: Expr
  readonly loop: Loop
  readonly value: Expr
}

/** A scalar that the threads of a row find by walks of their own: its key and weight name no row, loads are made one by one. */
export interface Threshold {
  readonly kind: 'threshold'
  readonly name: string
  readonly target: Expr
  readonly loop: Loop
  readonly key: Expr
  readonly value: Expr
}

/**
 * The largest elements of a row, which the threads of the row leave where all of them find them: rows that any thread may read at any
 * place, of as many elements as `count` says.
 */
export interface Ranking {
  readonly kind: 'topK'
  readonly name: string
  /** The row of places. */
  readonly indices: string
  readonly count: number
  readonly loop: Loop
  readonly value: Expr
}

/** A short row that takes work to compute and is read at other places than its own: computed once, for all threads of the row. */
export interface SharedRow {
  readonly kind: 'sharedRow'
  readonly name: string
  readonly type: ScalarType
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

/** What runs once a row. */
export type RowStmt = StmtOf<'let'> | StmtOf<'store'> | Threshold

/** What runs in a pass over its loop. */
export type PassStmt = Reduction | Histogram | Ranking | SharedRow | LoopStore

export type NormalStmt = RowStmt | PassStmt

export interface NormalKernel {
  /** No reductions, scans, thresholds, rankings or histograms, and every store runs over the same loop: nothing ties the elements of a row together. */
  readonly elementwise: boolean
  readonly axes: readonly RowAxis[]
  /** The axis neighbouring threads of an elementwise kernel run along, where it is not the loop. */
  readonly across: RowAxis | undefined
  readonly rows: ReadonlyMap<string, RowDef>
  /** Rows any thread of a row may read at any place, by name. */
  readonly shared: ReadonlyMap<string, Ranking | SharedRow>
  /** The loops of reductions and stores, each length once. */
  readonly loops: readonly Loop[]
  readonly statements: readonly NormalStmt[]
  /** True for a load that may be made even where the body would not make it. */
  readonly inBounds: (load: ExprOf<'load'>) => boolean
  /** Names already given, for later passes that need fresh ones. */
  readonly taken: Set<string>
}

/** A name of a scheduling pass: the wanted one, or `name_2` and so on. */
export const freshName = (wanted: string, taken: Set<string>): string => fresh(wanted, taken, { separator: '_' })
