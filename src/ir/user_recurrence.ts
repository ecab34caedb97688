/**
 * Recurrences that authors declare: the state carried from element to element of a row, and the step. A step is closed: it
 * reads the carried state and the values it takes from its element, and nothing else, so that only the step itself has to run in order.
 */
import { emptyEnv, evaluateExpr } from './evaluate_expr.js'
import type { Expr } from './expr.js'

export interface UserRecurrence {
  /** Carried state. */
  readonly fields: readonly { readonly name: string; readonly type: 'f32' | 'i32' }[]
  /** Types of the values that a step takes from its element. */
  readonly taken: readonly ('f32' | 'i32')[]
  /** Names of the carried and of the taken values in `next`: locals of that expression. */
  readonly before: readonly string[]
  readonly element: readonly string[]
  /** New state: one expression per field, over those locals and constants. */
  readonly next: readonly Expr[]
}

/** State after each element, in double precision. */
export function foldFields(
  { before, element, next }: UserRecurrence,
  start: readonly number[],
  length: number,
  taken: (at: number) => readonly number[],
): readonly (readonly number[])[] {
  const env = emptyEnv({})
  const set = (names: readonly string[], values: readonly number[]): void => {
    for (const [i, name] of names.entries()) env.values.set(name, values[i] ?? Number.NaN)
  }
  let carried = start
  return Array.from({ length }, (_, at) => {
    set(before, carried)
    set(element, taken(at))
    carried = next.map((expr) => Number(evaluateExpr(expr, env)))
    return carried
  })
}
