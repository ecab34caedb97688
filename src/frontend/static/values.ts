/**
 * Compile-time values of a body's expressions while it is lowered. Only scalars are represented in the IR; accessors, rows, functions
 * and records are known statically and disappear.
 */
import type { ArrowFunction, FunctionDeclaration, Node, ts } from 'ts-morph'
import type { ScalarType } from '../../ir/dtype.js'
import type { Expr } from '../../ir/expr.js'
import type { Stmt } from '../../ir/kernel.js'
import { freshName } from '../../ir/names.js'
import { Reported } from '../diagnostics/refusals.js'

export type FunctionNode = ArrowFunction | FunctionDeclaration

/** The brand of src/lang/intrinsics.ts, as read from a type. */
export interface Brand {
  readonly kind: string
  readonly name: string
}

export type Value =
  | { readonly kind: 'scalar'; readonly expr: Expr }
  /** An input, indexed by its logical indices. */
  | { readonly kind: 'access'; readonly tensor: string; readonly dims: readonly string[]; readonly type: ScalarType }
  /** A row value the kernel computes. `prefix`: a loop over another dimension may read its first elements. */
  | {
      readonly kind: 'row'
      readonly name: string
      readonly type: ScalarType
      readonly length: Expr
      readonly prefix?: boolean
    }
  /** A few numbers of an element, read at an index. */
  | { readonly kind: 'list'; readonly items: readonly Expr[] }
  /** A method of a monoid that an author declared. */
  | { readonly kind: 'monoid'; readonly definition: Node; readonly does: 'reduce' | 'scan' }
  /** `row(length, element)` before it is assigned to a named row or an output. */
  | { readonly kind: 'pendingRow'; readonly length: Expr; readonly element: Value; readonly node: Node }
  /** Counts of a row's integers, which only an output can hold. */
  | { readonly kind: 'histogram'; readonly bins: Expr; readonly length: Expr; readonly element: Value; readonly node: Node }
  | { readonly kind: 'function'; readonly node: FunctionNode; readonly scope: Scope }
  /** A refused value. Code that depends on it ends without another error. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'brand'; readonly brand: Brand }
  /** The inputs, the environment, or an object literal. */
  | { readonly kind: 'record'; readonly fields: ReadonlyMap<string, Value>; readonly node: Node }

export type ValueOf<K extends Value['kind']> = Extract<Value, { kind: K }>

/** Bindings of the author's symbols. An inlined function gets a new scope inside the scope of its definition. */
export interface Scope {
  readonly bindings: Map<ts.Symbol, Value>
  readonly outer: Scope | undefined
}

export const innerScope = (outer?: Scope): Scope => ({ bindings: new Map(), outer })

export function lookUp(scope: Scope, symbol: ts.Symbol): Value | undefined {
  return scope.bindings.get(symbol) ?? (scope.outer === undefined ? undefined : lookUp(scope.outer, symbol))
}

/**
 * Level of code. At `row` level, statements can be emitted before it. In a `branch` of a row-level conditional they
 * cannot, as they would run when the branch is not taken. An `element` is inside a loop over a row.
 */
export type Level = 'row' | 'branch' | 'element'

export interface Place {
  readonly scope: Scope
  readonly level: Level
  /** The loop over the row of an element that is computed for every element. */
  readonly loop?: { readonly index: string; readonly length: Expr }
  /** Conditions that hold here (types/guards.ts). */
  readonly guards?: readonly { readonly condition: Expr; readonly holds: boolean }[]
}

/** Returns an unused name of the kernel: the wanted one, or with the lowest free number. A `derived` name always has a number. */
export type Unique = (name: string, derived?: 'derived') => string

/** The origin of a row computed in order: the row itself, or the first such row that it is computed from. */
export interface InOrder {
  readonly made: 'scan' | 'fold'
  readonly row: string
}

/** Shared state of the lowering of one declaration. Passing it down keeps its modules from importing each other in cycles. */
export interface Lowering {
  /** The value of an expression. `name` is the author's name for it, if any. */
  readonly evaluate: (node: Node, place: Place, name?: string) => Value
  /** Calls a value. */
  readonly call: (callee: Value, args: readonly Value[], node: Node, place: Place, name?: string) => Value
  readonly emit: (stmt: Stmt) => void
  /** Returns the result of an action and the statements it emits, which are removed from the kernel. */
  readonly collect: <T>(action: () => T) => { readonly made: T; readonly statements: readonly Stmt[] }
  readonly unique: Unique
  /** Dimension of each loop and row index, where known. */
  readonly spans: Map<string, string>
  /** Expressions of scalars that the author names at row level. */
  readonly named: Map<string, Expr>
  /** Length of each loop over a row, by its index. */
  readonly loops: Map<string, Expr>
  /** Indices of loops inside an element, which run again for each element. */
  readonly inner: Set<string>
  /** Rows whose elements are available only in the loop that computes them, by name. */
  readonly inOrder: Map<string, InOrder>
  /** Returns the result of an action; undefined if it is refused, so that its siblings are still tried. */
  readonly attempt: <T>(action: () => T) => T | undefined
  /** Saves the state of the lowering; the returned function restores it after a refusal that is dropped. */
  readonly mark: () => () => void
  /** Functions being inlined, outermost first. */
  readonly stack: FunctionNode[]
}

/** Creates a generator of unique names, none of them `taken`. */
export function uniqueNames(taken: Iterable<string>): Unique {
  const used = new Set(taken)
  return (name, derived) => freshName(name, used, derived === undefined ? { from: 1 } : { from: 0, numbered: true })
}

export const scalar = (expr: Expr): Value => ({ kind: 'scalar', expr })

export const refused: Value = { kind: 'refused' }

/** The value itself. @throws Reported for a refused one */
export function usable(value: Value): Value {
  if (value.kind === 'refused') throw new Reported()
  return value
}

/** Description of a value, for messages. */
export function describe(value: Value): string {
  switch (value.kind) {
    case 'scalar':
      return { f32: 'a float', i32: 'an integer', bool: 'a boolean' }[value.expr.type]
    case 'access':
      return 'a tensor'
    case 'row':
    case 'pendingRow':
    case 'list':
      return 'a row'
    case 'histogram':
      return 'a histogram'
    case 'function':
    case 'monoid':
    case 'brand':
      return 'a function'
    case 'record':
      return 'an object'
    case 'refused':
      return 'refused'
  }
}
