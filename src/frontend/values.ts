/**
 * What expressions of a body mean while it is lowered. Only scalars have a place in the IR; accessors, rows, functions
 * and records are known statically and disappear.
 */
import type { ArrowFunction, FunctionDeclaration, Node, ts } from 'ts-morph'
import type { ScalarType } from '../ir/dtype.js'
import type { Expr } from '../ir/expr.js'
import type { Stmt } from '../ir/kernel.js'
import { freshName } from '../ir/names.js'
import { Reported } from './refusals.js'

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
  /** `row(length, element)` before a place has been chosen for it: a named row, or an output. */
  | { readonly kind: 'pendingRow'; readonly length: Expr; readonly element: Value; readonly node: Node }
  /** Counts of a row's integers, which only an output can hold. */
  | { readonly kind: 'histogram'; readonly bins: Expr; readonly length: Expr; readonly element: Value; readonly node: Node }
  | { readonly kind: 'function'; readonly node: FunctionNode; readonly scope: Scope }
  /** What was refused. Whatever needs it ends without a word. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'brand'; readonly brand: Brand }
  /** The inputs, the environment, or an object literal. */
  | { readonly kind: 'record'; readonly fields: ReadonlyMap<string, Value>; readonly node: Node }

export type ValueOf<K extends Value['kind']> = Extract<Value, { kind: K }>

/** Bindings of the author's symbols. An inlined function gets a scope of its own below the scope it was written in. */
export interface Scope {
  readonly bindings: Map<ts.Symbol, Value>
  readonly outer: Scope | undefined
}

export const innerScope = (outer?: Scope): Scope => ({ bindings: new Map(), outer })

export function lookUp(scope: Scope, symbol: ts.Symbol): Value | undefined {
  return scope.bindings.get(symbol) ?? (scope.outer === undefined ? undefined : lookUp(scope.outer, symbol))
}

/**
 * Where code runs. At `row` level, statements can be emitted before it; in a `branch` of a row-level conditional they
 * would run when the branch is not taken, so they cannot; an `element` is inside a loop over a row.
 */
export type Level = 'row' | 'branch' | 'element'

export interface Place {
  readonly scope: Scope
  readonly level: Level
  /** Of an element: the loop over the row that it is of, where it is computed for every element of that. */
  readonly loop?: { readonly index: string; readonly length: Expr }
  /** What holds where it is computed (guards.ts). */
  readonly guards?: readonly { readonly condition: Expr; readonly holds: boolean }[]
}

/** A name no other value of the kernel has: the wanted one, or with the lowest free number. A `derived` name always has a number. */
export type Unique = (name: string, derived?: 'derived') => string

/** The row that is made in order: the row itself, or the first that it is computed from. */
export interface InOrder {
  readonly made: 'scan' | 'fold'
  readonly row: string
}

/** Lowering of one declaration: what its parts share. Passing it down instead of importing each other keeps them acyclic. */
export interface Lowering {
  /** The value of an expression. `name` is what the author calls it, where they do. */
  readonly evaluate: (node: Node, place: Place, name?: string) => Value
  /** Calls a value. */
  readonly call: (callee: Value, args: readonly Value[], node: Node, place: Place, name?: string) => Value
  readonly emit: (stmt: Stmt) => void
  /** What an action makes, and the statements it emits, which are then not the kernel's own. */
  readonly collect: <T>(action: () => T) => { readonly made: T; readonly statements: readonly Stmt[] }
  readonly unique: Unique
  /** Dimension each loop and row index runs over, where that is known. */
  readonly spans: Map<string, string>
  /** What scalars that the author names at row level are. */
  readonly named: Map<string, Expr>
  /** Length of each loop over a row, by its index. */
  readonly loops: Map<string, Expr>
  /** Indices of loops inside an element, which run anew for each. */
  readonly inner: Set<string>
  /** Rows whose elements are known in the loop that makes them only, by name. */
  readonly inOrder: Map<string, InOrder>
  /** What an action returns; undefined where it is refused, after which those beside it are tried. */
  readonly attempt: <T>(action: () => T) => T | undefined
  /** Where the lowering stands; what is returned takes it back there after a refusal that is not passed on. */
  readonly mark: () => () => void
  /** Functions being inlined, outermost first. */
  readonly stack: FunctionNode[]
}

/** Names handed out in order, none of them `taken`. */
export function uniqueNames(taken: Iterable<string>): Unique {
  const used = new Set(taken)
  return (name, derived) => freshName(name, used, derived === undefined ? { from: 1 } : { from: 0, numbered: true })
}

export const scalar = (expr: Expr): Value => ({ kind: 'scalar', expr })

export const refused: Value = { kind: 'refused' }

/** A value that can be used. @throws Reported for one that was refused */
export function usable(value: Value): Value {
  if (value.kind === 'refused') throw new Reported()
  return value
}

/** What messages call a value. */
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
