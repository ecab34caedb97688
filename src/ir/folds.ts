/** Names of the loops inside of expressions, for whoever moves an expression into a place with names of its own. */
import { index } from './build.js'
import type { Expr } from './expr.js'
import { rewrite, substitute } from './walk.js'

/**
 * The expression with every fold's index named `fold1`, `fold2`, ...: names that no role of a template has. Folds may have such names
 * already, in another order, so each gets a name that no expression has first: else the index of a fold inside of another would be taken
 * for that of the outer one.
 */
export function renameFolds(expr: Expr): Expr {
  let count = 0
  const names = new Map<string, string>()
  const apart = rewrite(expr, (node) => {
    if (node.kind !== 'fold') return node
    count += 1
    const name = `(fold ${count})`
    names.set(name, `fold${count}`)
    return { ...node, index: name, value: substitute(node.value, new Map([[node.index, index(name)]])) }
  })
  return rewrite(apart, (node) => {
    if (node.kind === 'index') return names.has(node.name) ? { ...node, name: names.get(node.name) ?? node.name } : node
    return node.kind === 'fold' ? { ...node, index: names.get(node.index) ?? node.index } : node
  })
}
