/**
 * Reason why a program is no epilogue: it needs elements of the matmul other than its own. States along which axes of the graph, and whether it reduces
 * them, as a group norm does after a matmul of its rows.
 */
import { index } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { Kernel, Stmt } from '../../ir/kernel.js'
import { printExtent, printShape, type Shape } from '../../ir/shape.js'
import { visitKernel } from '../../ir/walk.js'
import { equalExprs } from '../space/positions.js'

/**
 * @param tensor stands for the matmul in the kernel
 * @param shape the extents of its axes in the graph
 */
export function readsOthers(kernel: Kernel, tensor: string, shape: Shape): string {
  const { dims = [] } = kernel.tensors.find(({ name }) => name === tensor) ?? {}
  const rowOf = new Map(kernel.rows.map((row) => [row.dim, row.index]))
  const others = new Set<number>()
  let isReduced = true
  for (const stmt of kernel.body) {
    const reduced = reducedIndices(kernel, stmt)
    const own = dims.map((dim, at) => (stmt.kind === 'storeRow' && at === dims.length - 1 ? stmt.index : rowOf.get(dim)))
    visitKernel({ ...kernel, body: [stmt] }, (expr) => {
      if (expr.kind !== 'load' || expr.tensor !== tensor) return
      expr.indices.forEach((place, at) => {
        const name = own[at]
        if (name !== undefined && equalExprs(place, index(name))) return
        others.add(at)
        isReduced &&= place.kind === 'index' && reduced.has(place.name)
      })
    })
  }
  const axes = [...others].sort((a, b) => a - b).flatMap((at) => (shape[at] === undefined ? [] : [`"${printExtent(shape[at])}"`]))
  const along = `${axes.join(' and ')} of "${printShape(shape)}"`
  return isReduced
    ? `an op after the matmul reduces it along ${along}, and an epilogue works on each element by itself: the reduction needs a kernel of its own`
    : `an element of an op after the matmul needs others of it, along ${along}, and an epilogue works on each element by itself`
}

/** Indices of the reductions of a statement. */
function reducedIndices(kernel: Kernel, stmt: Stmt): ReadonlySet<string> {
  const found = new Set<string>(stmt.kind === 'reduce' ? [stmt.index] : [])
  visitKernel({ ...kernel, body: [stmt] }, (expr: Expr) => {
    if (expr.kind === 'fold') found.add(expr.index)
  })
  return found
}
