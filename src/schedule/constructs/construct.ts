/**
 * Scheduling of a construct: normalisation of a statement of the kernel, and, for each normal form, the operations that later passes need. One file
 * holds both for each kind of src/ir/constructs.
 */
import type { Check, Defined } from '../../ir/constructs/construct.js'
import type { Expr } from '../../ir/expr.js'
import type { Context } from '../normalise/elements.js'
import type { NormalStmt } from '../normalise/normal.js'

/** Brings a statement into normal form. Row values become rows of the context and leave no statement. */
export type Normalise<S> = { normalise(stmt: S, context: Context): readonly NormalStmt[] }['normalise']

/** A normalised statement, of a row or of a pass. */
export interface Scheduled<S> {
  /** Names that can be read once it has run; for a statement in a pass, after that pass. */
  defines(stmt: S): readonly Defined[]
  /** Expressions of location: lengths, indices, bounds. */
  places(stmt: S): readonly Expr[]
  /** Computed values: passes simplify them, and a pass needs the rows that they read. */
  values(stmt: S): readonly Expr[]
  mapValues(stmt: S, map: (value: Expr) => Expr): S
  /** True if its values must not be computed for some rows or elements. */
  isConditional(stmt: S): boolean
  /** Checks the rules of the normal form, in addition to those of src/schedule/verify/verify.ts. @throws what `fail` of the check throws */
  verify(stmt: S, check: Check): void
  /** Description in words, for `heddle inspect`. */
  describe(stmt: S): string
}

/** A statement that runs once per row. */
export interface RowStatement<S> extends Scheduled<S> {
  /** True if the threads of a row walk over it for this statement alone, so that its values are those of an element. */
  readonly searches: boolean
}

/** A statement that runs for every element of a loop. */
export interface PassStatement<S> extends Scheduled<S> {
  /** True if all lanes of the row synchronise in every chunk, which takes whole warps. */
  readonly meets: boolean
}
