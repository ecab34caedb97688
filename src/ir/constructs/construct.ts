/**
 * What a row construct is: one object for each kind of statement holds its expressions, names, meaning, text, rules and traits, and
 * generic rooms ask the object instead of listing kinds. Scheduling and emission of a construct are objects of their own, in
 * src/schedule/constructs and src/emit/constructs, which are keyed by the same kinds: tsc refuses a kind that lacks one.
 */
import type { ScalarType } from '../dtype.js'
import type { Expr } from '../expr.js'
import type { MonoidName } from '../monoids.js'

export type Value = number | boolean

/** What most constructs have: a loop over the elements of a row, and the value of an element. */
export interface Looped {
  readonly length: Expr
  readonly index: string
  readonly value: Expr
}

/** A name that a statement gives to a scalar (`local`) or to a row value. */
export interface Defined {
  readonly kind: 'local' | 'row'
  readonly name: string
  readonly type: ScalarType
}

/** Facts that fusion, pricing and scheduling decide by. */
export interface Traits {
  readonly makes: 'scalar' | 'rows' | 'output'
  /** True if it runs over elements at all, and whether its results need several of them. */
  readonly elements: 'none' | 'each' | 'combined'
  /**
   * Which walk over the row computes it: `none` (once a row), any that reads its elements, since they may be computed again (`where
   * read`), one that it shares with other constructs (`shared`), after which its names are known, or walks that only it makes (`own`).
   */
  readonly walk: 'none' | 'where read' | 'shared' | 'own'
  /** What it does that keeps its op out of a kernel with other ops, in words; absent where it can be fused. */
  readonly alone?: string
}

/** Evaluation of one statement at one point of the rows. */
export interface Run {
  value(expr: Expr): Value
  number(expr: Expr): number
  /** The value of an element by its place in the row. */
  element(index: string, expr: Expr): (at: number) => Value
  elementNumber(index: string, expr: Expr): (at: number) => number
  setLocal(name: string, value: Value): void
  setRow(name: string, values: readonly Value[]): void
  write(tensor: string, indices: readonly number[], value: Value): void
  /** Elements 0 to `length` of the row of a tensor that `rows` names, where they hold. */
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

/** The rules of expressions, which verification of a statement is made of. */
export interface Check {
  /** The type of an expression that is evaluated once a row. */
  type(expr: Expr): ScalarType
  /** The type of one that is evaluated for each element. */
  element(index: string, expr: Expr): ScalarType
  /** Refuses what is no integer. */
  index(expr: Expr): void
  /** The type a monoid makes of elements, which it must take. */
  combined(monoid: MonoidName, element: ScalarType): ScalarType
  /** Refuses a value that says another type than it has. */
  says(name: string, said: ScalarType, type: ScalarType): void
  /** Refuses what is no output, or one of another rank or type. */
  store(tensor: string, rank: number, value: ScalarType): void
  /** The rules where names besides can be read: those of a statement's own steps. */
  within(names: readonly (Pick<Defined, 'name' | 'type'> & { readonly kind: Defined['kind'] | 'index' })[]): Check
  fail(problem: string): never
}

/** Everything the IR knows of one kind of statement. */
export interface Construct<S> {
  readonly traits: Traits
  /** The scalars and row values it introduces. Its loop index is `index`. */
  defines(stmt: S): readonly Defined[]
  /** The statement with the names it introduces replaced, its loop index left alone. */
  rename(stmt: S, name: (before: string) => string): S
  /** The expressions that are evaluated once a row. */
  rowExprs(stmt: S): readonly Expr[]
  /** The expressions that are evaluated once an element. */
  elementExprs(stmt: S): readonly Expr[]
  /** The statement with every expression replaced. */
  map(stmt: S, map: (expr: Expr) => Expr): S
  evaluate(stmt: S, run: Run): void
  /** One line. */
  print(stmt: S, text: Text): string
  /** @throws what `fail` of the check throws */
  verify(stmt: S, check: Check): void
}
