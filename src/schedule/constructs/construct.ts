/**
 * What scheduling knows of a construct: how a statement of the kernel is brought into normal form, and, of each normal form, what the
 * passes after that do with it. One file holds both for each kind of src/ir/constructs.
 */
import type { Check, Defined } from '../../ir/constructs/construct.js'
import type { Expr } from '../../ir/expr.js'
import type { Context } from '../elements.js'
import type { NormalStmt } from '../normal.js'

/** Brings a statement into normal form. Row values become rows of the context and leave no statement. */
export type Normalise<S> = { normalise(stmt: S, context: Context): readonly NormalStmt[] }['normalise']

/** A normalised statement, whether it runs once a row or in a pass. */
export interface Scheduled<S> {
  /** What can be read once it has run; of a statement in a pass, after that pass. */
  defines(stmt: S): readonly Defined[]
  /** Where it runs: lengths, indices, bounds. */
  places(stmt: S): readonly Expr[]
  /** What it computes: the expressions that passes simplify, and whose rows a pass needs. */
  values(stmt: S): readonly Expr[]
  mapValues(stmt: S, map: (value: Expr) => Expr): S
  /** True if there are rows or elements for which its values must not be computed. */
  isConditional(stmt: S): boolean
  /** The rules of the normal form, beside those of src/schedule/verify.ts. @throws what `fail` of the check throws */
  verify(stmt: S, check: Check): void
  /** What it does in words, for `heddle inspect`. */
  describe(stmt: S): string
}

/** Runs once a row. */
export interface RowStatement<S> extends Scheduled<S> {
  /** True if the threads of a row walk over it for this statement alone, so that its values are those of an element. */
  readonly searches: boolean
}

/** Runs for every element of a loop. */
export interface PassStatement<S> extends Scheduled<S> {
  /** True if all lanes of the row meet in every chunk, which takes whole warps. */
  readonly meets: boolean
}
