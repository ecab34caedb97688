/** Names of the loops inside of expressions, for whoever moves an expression into a place with names of its own. */
import { index } from './build.js'
import type { Expr } from './expr.js'
import { rewrite, substitute, visit } from './walk.js'

/**
 * The expression with every fold's index named by how many folds are inside of it, `fold1`, `fold2`, ...: names that no role of a template
 * has, and the same for equal folds wherever they stand. Folds may have such names already, in another order, so each gets a name that no
 * expression has first: else the index of a fold inside of another would be taken for that of the outer one.
 */
export function renameLoops(expr: Expr): Expr {
  let count = 0
  const names = new Map<string, string>()
  const depths = new Map<string, number>()
  /** How many folds stand inside of each other in an expression. */
  const depthOf = (of: Expr): number => {
    let depth = 0
    visit(of, (node) => {
      if (node.kind === 'fold') depth = Math.max(depth, depths.get(node.index) ?? 0)
    })
    return depth
  }
  const apart = rewrite(expr, (node) => {
    if (node.kind !== 'fold') return node
    count += 1
    const name = `(fold ${count})`
    const depth = depthOf(node.value) + 1
    names.set(name, `fold${depth}`)
    depths.set(name, depth)
    return { ...node, index: name, value: substitute(node.value, new Map([[node.index, index(name)]])) }
  })
  return rewrite(apart, (node) => {
    if (node.kind === 'index') return names.has(node.name) ? { ...node, name: names.get(node.name) ?? node.name } : node
    return node.kind === 'fold' ? { ...node, index: names.get(node.index) ?? node.index } : node
  })
}
