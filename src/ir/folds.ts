/** Names of the loops inside of expressions, for whoever moves an expression into a place with names of its own. */
import { index } from './build.js'
import type { Expr } from './expr.js'
import { rewrite, substitute } from './walk.js'

/** The expression with every fold's index named `fold1`, `fold2`, ...: names that no role of a template has. */
export function renameFolds(expr: Expr): Expr {
  let count = 0
  return rewrite(expr, (node) => {
    if (node.kind !== 'fold') return node
    count += 1
    const name = `fold${count}`
    return { ...node, index: name, value: substitute(node.value, new Map([[node.index, index(name)]])) }
  })
}
