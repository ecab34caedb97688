/**
 * A kernel: one row program over an index space. `rows` span the space (one program run per point); within a point the
 * statements run in order. Row values (`row`, `scan`) are pure, so a schedule may keep them in registers or compute them again.
 */
import type { DType, ScalarType } from './dtype.js'
import type { Expr } from './expr.js'
import type { Layout } from './layout.js'
import type { MonoidName } from './monoids.js'

/** Where something was written, for diagnostics and comments in generated text. Paths are relative to the project, with `/`. */
export interface SourceSpan {
  readonly file: string
  readonly line: number
  readonly column: number
}

/** A storage type: fixed, or one of the op's type parameters. */
export type DTypeRef = DType | { readonly param: string }

export interface TensorParam {
  readonly name: string
  readonly access: 'in' | 'out'
  readonly dtype: DTypeRef
  /** Extent of each logical dimension: a dimension name of the kernel. */
  readonly dims: readonly string[]
  readonly layout: Layout
  /** Of an output: the input it is but for some elements, which are replaced in that input's memory (see ir/update.ts). */
  readonly updates?: string
  /**
   * Of an input: a weight in every graph the kernel is for. The kernel reads it through the read-only path and whenever it likes, so
   * programs in which a step writes it are refused (runtime/program_constants.ts). Never of an op itself, which anyone may launch.
   */
  readonly constant?: true
}

export interface AttrParam {
  readonly name: string
  readonly type: 'f32' | 'i32'
  readonly default: number
}

export interface RowAxis {
  /** The index variable. */
  readonly index: string
  /** The dimension it spans. */
  readonly dim: string
}

export type Stmt =
  /** A scalar computed once per row. */
  | { readonly kind: 'let'; readonly name: string; readonly type: ScalarType; readonly value: Expr }
  /** A row value: `length` elements, element `index` is `value`. */
  | {
      readonly kind: 'row'
      readonly name: string
      readonly type: ScalarType
      readonly length: Expr
      readonly index: string
      readonly value: Expr
    }
  /** A row reduction, computed by all threads of the row together. */
  | {
      readonly kind: 'reduce'
      readonly name: string
      readonly type: ScalarType
      readonly monoid: MonoidName
      readonly length: Expr
      readonly index: string
      readonly value: Expr
    }
  /** A row value: element `index` combines the values of elements 0 to `index`, computed by all threads of the row together. */
  | {
      readonly kind: 'scan'
      readonly name: string
      readonly type: ScalarType
      readonly monoid: MonoidName
      readonly length: Expr
      readonly index: string
      readonly value: Expr
    }
  /**
   * The largest of a row's keys from which on elements weigh at least `target` together; -Infinity where all weigh less. `value` is an
   * element's weight. Found by all threads of the row together.
   */
  | {
      readonly kind: 'threshold'
      readonly name: string
      readonly target: Expr
      readonly length: Expr
      readonly index: string
      readonly key: Expr
      readonly value: Expr
    }
  /**
   * Two row values of `count` elements: the largest values of a row, largest first, and `indices`, the places they have in it
   * (src/ir/top_k.ts says which come first). All threads of the row compute them together; `count` is a dimension that instances fix.
   */
  | {
      readonly kind: 'topK'
      readonly name: string
      readonly indices: string
      readonly count: Expr
      readonly length: Expr
      readonly index: string
      readonly value: Expr
    }
  /** Stores a whole row: the last logical index of the tensor runs over `length`. Elements where `when` does not hold are left alone. */
  | {
      readonly kind: 'storeRow'
      readonly tensor: string
      readonly rows: readonly Expr[]
      readonly length: Expr
      readonly index: string
      readonly value: Expr
      readonly when?: Expr
    }
  /**
   * Stores a row of `bins` counts: element b of the tensor's last dimension is how many values are b. Values outside [0, bins) are
   * not counted. The one statement that a value does not own: the threads of a row add to its counts in any order.
   */
  | {
      readonly kind: 'histogram'
      readonly tensor: string
      readonly rows: readonly Expr[]
      readonly bins: Expr
      readonly length: Expr
      readonly index: string
      readonly value: Expr
    }
  /** Stores one scalar per row, where `when` holds. */
  | {
      readonly kind: 'store'
      readonly tensor: string
      readonly indices: readonly Expr[]
      readonly value: Expr
      readonly when?: Expr
    }

export type StmtOf<K extends Stmt['kind']> = Extract<Stmt, { kind: K }>

export interface Kernel {
  /** snake_case, unique among the project's ops and fused groups. */
  readonly name: string
  readonly source: SourceSpan
  readonly dims: readonly string[]
  /** Type parameters and the storage types each may take. */
  readonly types: Readonly<Record<string, readonly DType[]>>
  readonly attrs: readonly AttrParam[]
  /** Inputs first, then outputs, in declaration order: also the argument order of launchers. */
  readonly tensors: readonly TensorParam[]
  readonly rows: readonly RowAxis[]
  readonly body: readonly Stmt[]
}
