/**
 * Recurrences that authors declare: what is carried from element to element of a row, and what a step makes of it. A step is closed: it
 * reads what is carried and what it takes of its element, and nothing else, so that only the step itself has to run in order.
 */
import { emptyEnv, evaluateExpr } from './evaluate_expr.js'
import type { Expr } from './expr.js'

export interface UserRecurrence {
  /** What is carried. */
  readonly fields: readonly { readonly name: string; readonly type: 'f32' | 'i32' }[]
  /** Types of what a step takes of its element. */
  readonly taken: readonly ('f32' | 'i32')[]
  /** Names of what is carried and of what is taken in `next`: locals that mean nothing elsewhere. */
  readonly before: readonly string[]
  readonly element: readonly string[]
  /** What is carried on: a field each, over those locals and constants. */
  readonly next: readonly Expr[]
}

/** What is carried behind each element, in double precision. */
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
