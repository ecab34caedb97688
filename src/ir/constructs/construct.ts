/**
 * Interface of row constructs: one object per kind of statement has its expressions, names, evaluation, printing, rules and traits, and
 * generic code calls the object instead of listing kinds. Scheduling and emission of a construct are separate objects, in
 * src/schedule/constructs and src/emit/constructs, which are keyed by the same kinds: tsc refuses a kind that lacks one.
 */
import type { ScalarType } from '../dtype.js'
import type { Expr } from '../expr.js'
import type { MonoidName } from '../monoids.js'

export type Value = number | boolean

/** Fields of most constructs: a loop over the elements of a row, and the value of an element. */
export interface Looped {
  readonly length: Expr
  readonly index: string
  readonly value: Expr
}

/** A scalar (`local`) or row value that a statement defines. */
export interface Defined {
  readonly kind: 'local' | 'row'
  readonly name: string
  readonly type: ScalarType
}

/** Properties on which fusion, pricing and scheduling base their decisions. */
export interface Traits {
  readonly makes: 'scalar' | 'rows' | 'output'
  /** `none` if it does not run over elements, `each` if a result needs one of them, `combined` if a result needs several. */
  readonly elements: 'none' | 'each' | 'combined'
  /**
   * Walk over the row that computes it. `none`: once per row. `where read`: any walk that reads its elements, since they may be
   * recomputed. `shared`: a walk shared with other constructs, after which its names are known. `own`: separate walks.
   */
  readonly walk: 'none' | 'where read' | 'shared' | 'own'
  /** Reason, in words, why its op cannot be fused with others; absent if it can be fused. */
  readonly alone?: string
}

/** Evaluation of one statement at one point of the rows. */
export interface Run {
  value(expr: Expr): Value
  number(expr: Expr): number
  /** Value of an element by its position in the row. */
  element(index: string, expr: Expr): (at: number) => Value
  elementNumber(index: string, expr: Expr): (at: number) => number
  setLocal(name: string, value: Value): void
  setRow(name: string, values: readonly Value[]): void
  write(tensor: string, indices: readonly number[], value: Value): void
  /** Writes elements 0 to `length` of the row of a tensor at the indices `rows`, except those for which `holds` is false. */
  writeRow(
    tensor: string,
    rows: readonly number[],
    length: number,
    element: (at: number) => Value,
    holds?: (at: number) => Value,
  ): void
}

/** Expressions as text. */
export interface Text {
  expr(expr: Expr): string
  /** `c < n`. */
  loop(loop: Pick<Looped, 'index' | 'length'>): string
  operand(expr: Expr): string
}

/** The rules of expressions, from which the verification of a statement is built. */
export interface Check {
  /** Type of an expression that is evaluated once per row. */
  type(expr: Expr): ScalarType
  /** Type of an expression that is evaluated once per element. */
  element(index: string, expr: Expr): ScalarType
  /** Fails if an expression is not an integer. */
  index(expr: Expr): void
  /** Result type of a monoid for an element type, which it must accept. */
  combined(monoid: MonoidName, element: ScalarType): ScalarType
  /** Fails if a value declares another type than it has. */
  says(name: string, said: ScalarType, type: ScalarType): void
  /** Fails if the tensor is not an output, or has another rank or type. */
  store(tensor: string, rank: number, value: ScalarType): void
  /** The rules in a scope with additional names: those of a statement's own steps. */
  within(names: readonly (Pick<Defined, 'name' | 'type'> & { readonly kind: Defined['kind'] | 'index' })[]): Check
  fail(problem: string): never
}

/** Everything the IR knows about one kind of statement. */
export interface Construct<S> {
  readonly traits: Traits
  /** Scalars and row values that it introduces. Its loop index is `index`. */
  defines(stmt: S): readonly Defined[]
  /** The statement with the names that it introduces replaced, except its loop index. */
  rename(stmt: S, name: (before: string) => string): S
  /** Expressions that are evaluated once per row. */
  rowExprs(stmt: S): readonly Expr[]
  /** Expressions that are evaluated once per element. */
  elementExprs(stmt: S): readonly Expr[]
  /** The statement with every expression replaced. */
  map(stmt: S, map: (expr: Expr) => Expr): S
  evaluate(stmt: S, run: Run): void
  /** One line. */
  print(stmt: S, text: Text): string
  /** @throws the error of the check's `fail` */
  verify(stmt: S, check: Check): void
}
