/** Canonical names of the loops inside expressions, for moving an expression into a scope that has names already. */
import { index } from './build.js'
import type { Expr } from './expr.js'
import { rewrite, substitute, visit } from './walk.js'

/**
 * Renames the index of every fold by its nesting depth, `fold1` being the innermost, then `fold2`, ... No role of a template has such a
 * name, and equal folds get the same names anywhere. Folds may have such names already, in another order. Each therefore first gets a
 * name that no expression has: otherwise the index of an inner fold could be taken for that of the outer one.
 */
export function renameLoops(expr: Expr): Expr {
  let count = 0
  const names = new Map<string, string>()
  const depths = new Map<string, number>()
  /** Nesting depth of the folds in an expression. */
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
