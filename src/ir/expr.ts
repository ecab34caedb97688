/**
 * Expressions: pure scalar computations. Every node carries its scalar type, so later passes never infer again.
 * Operators and intrinsics are both `call`; conversions are explicit calls of `toFloat` / `toInt`.
 */
import type { ScalarType } from './dtype.js'
import type { IntrinsicName } from './intrinsics.js'
import type { MonoidName } from './monoids.js'

export type Expr =
  | { readonly kind: 'const'; readonly type: ScalarType; readonly value: number | boolean }
  /** The run-time extent of a dimension. */
  | { readonly kind: 'dim'; readonly type: 'i32'; readonly name: string }
  /** A run-time parameter of the op. */
  | { readonly kind: 'attr'; readonly type: 'f32' | 'i32'; readonly name: string }
  /** A row index, or the loop index of the enclosing row construct. Names are unique within a kernel. */
  | { readonly kind: 'index'; readonly type: 'i32'; readonly name: string }
  /** The value of a `let` or of a row reduction. */
  | { readonly kind: 'local'; readonly type: ScalarType; readonly name: string }
  /** One element of a row value. */
  | { readonly kind: 'element'; readonly type: ScalarType; readonly row: string; readonly index: Expr }
  /** One element of a tensor, by logical indices; the layout turns them into an offset at emission. */
  | { readonly kind: 'load'; readonly type: ScalarType; readonly tensor: string; readonly indices: readonly Expr[] }
  | { readonly kind: 'call'; readonly type: ScalarType; readonly fn: IntrinsicName; readonly args: readonly Expr[] }
  /** A reduction inside an element: computed serially by the thread that owns the element. */
  | {
      readonly kind: 'fold'
      readonly type: ScalarType
      readonly monoid: MonoidName
      readonly length: Expr
      readonly index: string
      readonly value: Expr
    }

export type ExprOf<K extends Expr['kind']> = Extract<Expr, { kind: K }>
