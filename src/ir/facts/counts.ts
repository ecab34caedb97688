/** Conversion of integer expressions to counts, if they depend on sizes only. */
import type { Expr } from '../expr.js'
import { visit } from '../walk.js'
import { type Count, integerOperations } from './facts.js'

const isOperation = (fn: string): fn is (typeof integerOperations)[number] => integerOperations.some((each) => each === fn)

/**
 * Count of an expression for a number of elements, in terms of the sizes of a run; an upper bound if it depends on more than sizes.
 * @param locals values of `let` statements
 */
export function countOf(expr: Expr, locals: ReadonlyMap<string, Expr>): Count | undefined {
  switch (expr.kind) {
    case 'const':
      return typeof expr.value === 'number' ? expr.value : undefined
    case 'dim':
    case 'attr':
      return expr.type === 'i32' ? expr.name : undefined
    case 'local': {
      const value = locals.get(expr.name)
      return value === undefined ? undefined : countOf(value, locals)
    }
    case 'call': {
      if (!isOperation(expr.fn)) return undefined
      const args = expr.args.map((arg) => countOf(arg, locals))
      const known = args.flatMap((arg) => (arg === undefined ? [] : [arg]))
      if (known.length === args.length) return [expr.fn, ...known]
      // Counts are not negative, so a difference is at most its minuend.
      return expr.fn === 'minimum' || expr.fn === 'sub' ? args[0] : undefined
    }
    default:
      return undefined
  }
}

/** True if an expression depends only on sizes: a number of elements. */
export function constantsOnly(expr: Expr): boolean {
  let isSize = false
  let isOnly = true
  visit(expr, (node) => {
    if (node.kind === 'dim') isSize = true
    else if (node.kind !== 'const' && node.kind !== 'call') isOnly = false
  })
  return isSize && isOnly
}
