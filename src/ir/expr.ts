/**
 * Expressions: pure scalar computations. Every node carries its scalar type, so later passes never infer again.
 * Operators and intrinsics are both `call`; conversions are explicit calls of `toFloat` / `toInt`. Nodes of a body carry their source
 * location (`span`), which is not part of their identity.
 */
import type { ScalarType } from './dtype.js'
import type { IntrinsicName } from './intrinsics.js'
import type { MonoidName } from './monoids.js'
import type { SourceSpan } from './span.js'

/**
 * Form of a call. `fast` has the error of its row in src/ir/forms.ts; `flushed` also replaces results below 2^-126 by 0. A call without a form
 * is open until the schedule chooses, and exact afterwards.
 */
export type Form = 'exact' | 'fast' | 'flushed'

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
  | {
      readonly kind: 'element'
      readonly type: ScalarType
      readonly row: string
      readonly index: Expr
      readonly span?: SourceSpan
    }
  /** One element of a tensor, by logical indices; emission maps them to an offset through the layout. */
  | {
      readonly kind: 'load'
      readonly type: ScalarType
      readonly tensor: string
      readonly indices: readonly Expr[]
      readonly span?: SourceSpan
    }
  | {
      readonly kind: 'call'
      readonly type: ScalarType
      readonly fn: IntrinsicName
      readonly args: readonly Expr[]
      /** Precision of its computation (src/ir/forms.ts), a part of its identity. */
      readonly form?: Form
      readonly span?: SourceSpan
    }
  /** A reduction inside an element, computed serially by the thread that owns the element. */
  | {
      readonly kind: 'fold'
      readonly type: ScalarType
      readonly monoid: MonoidName
      readonly length: Expr
      readonly index: string
      readonly value: Expr
      readonly span?: SourceSpan
    }

export type ExprOf<K extends Expr['kind']> = Extract<Expr, { kind: K }>

/** The expression with its source location, unless it has one: a shared expression keeps the location of its first use. */
export function writtenAt(expr: Expr, span: () => SourceSpan): Expr {
  switch (expr.kind) {
    case 'element':
    case 'load':
    case 'call':
    case 'fold':
      return expr.span === undefined ? { ...expr, span: span() } : expr
    default:
      return expr
  }
}

/** Source location of a node, if it carries one. */
export const spanOf = (expr: Expr): SourceSpan | undefined => ('span' in expr ? expr.span : undefined)

/** The replacement of a node, with the source location of that node. */
export function inPlaceOf(before: Expr, made: Expr): Expr {
  const span = spanOf(before)
  return span === undefined ? made : writtenAt(made, () => span)
}
