/** Rewrites rows whose elements are reductions as elements with reductions of their own: the form in which column programs are found. */
import { index as indexVar } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { Kernel, Stmt, StmtOf } from '../../ir/kernel.js'
import { introducedNames } from '../../ir/walk.js'
import { isHostExpr } from '../normalise/host_expr.js'
import { freshName } from '../normalise/normal.js'
import { hashOf, rewritePaths, sameExpr, substituteIndex, usesIndex } from '../normalise/rewrite.js'

/**
 * Rewrites a kernel that stores rows of reductions as a kernel over the elements, with the reductions as statements. Returns undefined for any
 * other kernel. Only reductions that every element needs are extracted.
 */
export function acrossElements(kernel: Kernel): Kernel | undefined {
  const stores = kernel.body.filter((s): s is StmtOf<'storeRow'> => s.kind === 'storeRow')
  const lets = kernel.body.filter((s): s is StmtOf<'let'> => s.kind === 'let')
  const [first] = stores
  if (first?.length.kind !== 'dim' || stores.length + lets.length !== kernel.body.length) return undefined
  const { index: column, length } = first
  if (stores.some((s) => !sameExpr(s.length, length) || s.when !== undefined)) return undefined
  const taken = new Set([...kernel.dims, ...kernel.tensors.map(({ name }) => name), ...kernel.attrs.map(({ name }) => name)])
  for (const s of kernel.body) for (const name of introducedNames(s)) taken.add(name)
  const made = new Map<string, StmtOf<'reduce'>>()
  let loopIndex: string | undefined
  const lifted = (e: Expr): Expr =>
    rewritePaths(e, (node, always) => {
      if (node.kind !== 'fold' || !always || !isHostExpr(node.length)) return undefined
      // Nested reductions that do not depend on this one's index are lifted first.
      const inner = rewritePaths(node.value, (within, alwaysWithin) =>
        within.kind === 'fold' && alwaysWithin && !usesIndex(within, node.index) && isHostExpr(within.length)
          ? lifted(within)
          : undefined,
      )
      loopIndex ??= node.index
      taken.add(loopIndex)
      const over = substituteIndex(inner, node.index, indexVar(loopIndex))
      const key = `${node.monoid} ${hashOf(node.length)} ${hashOf(over)}`
      const known = made.get(key)
      const name = known?.name ?? freshName(node.monoid, taken)
      // No two loops of a kernel share an index.
      const index = made.size === 0 ? loopIndex : freshName(loopIndex, taken)
      if (known === undefined) {
        const own = substituteIndex(inner, node.index, indexVar(index))
        made.set(key, { kind: 'reduce', name, type: node.type, monoid: node.monoid, length: node.length, index, value: own })
      }
      return { kind: 'local', type: node.type, name }
    })
  const moved = stores.map((s): Stmt => {
    const value = lifted(substituteIndex(s.value, s.index, indexVar(column)))
    return { kind: 'store', tensor: s.tensor, indices: [...s.rows, indexVar(column)], value }
  })
  if (made.size === 0) return undefined
  const rows = [...kernel.rows, { index: column, dim: length.name }]
  return { ...kernel, rows, body: [...lets, ...made.values(), ...moved] }
}
