/**
 * Compiles an integer expression to a function of its variables, for proofs that evaluate one expression at many points: names are
 * looked up once, not at every point. The semantics are those of the evaluator.
 */
import type { Expr } from './expr.js'
import { intrinsic } from './intrinsics.js'

/** Values by slot. */
type Compiled = (values: readonly number[]) => number

/**
 * @param slots position of the value of each index variable and dimension; an index and a dimension may share a name
 * @throws internal for an expression that reads anything else
 */
export function integerFunction(
  expr: Expr,
  slots: { readonly index: ReadonlyMap<string, number>; readonly dim: ReadonlyMap<string, number> },
): Compiled {
  const slotOf = (of: ReadonlyMap<string, number>, name: string): number => {
    const slot = of.get(name)
    if (slot === undefined) throw new Error(`internal: ${name} is not a variable of the expression`)
    return slot
  }
  const compile = (e: Expr): Compiled => {
    switch (e.kind) {
      case 'const': {
        const value = Number(e.value)
        return () => value
      }
      case 'index':
      case 'dim': {
        const slot = slotOf(slots[e.kind], e.name)
        return (values) => values[slot] ?? Number.NaN
      }
      case 'call': {
        const { evaluate } = intrinsic(e.fn)
        const args = e.args.map(compile)
        const [a, b, ...more] = args
        // Nearly all calls take two arguments, and need no list.
        if (a !== undefined && b !== undefined && more.length === 0) return (values) => Number(evaluate(a(values), b(values)))
        return (values) => Number(evaluate(...args.map((arg) => arg(values))))
      }
    }
    throw new Error(`internal: an integer function reads ${e.kind}`)
  }
  return compile(expr)
}
