/**
 * Coalescing of recurrences: decides whether the elements of a row are adjacent in memory, so that its lanes read together, or the rows, which
 * calls for one thread per row. Used for kernels with a recurrence along their rows, where either is possible.
 */
import type { ExprOf } from '../../ir/expr.js'
import type { Instance } from '../../ir/instance.js'
import { visit } from '../../ir/walk.js'
import { scheduledOf } from '../constructs/index.js'
import { type NormalKernel, rowExprs } from '../normalise/normal.js'
import { usesIndex } from '../normalise/rewrite.js'
import { classify, offsetOf } from './access.js'
import { multiplesOf } from './multiples.js'

/** True if the reads of an element are contiguous from row to row, and not along the row. */
export function rowsAreNeighbours({ kernel: own, dims }: Instance, kernel: NormalKernel): boolean {
  const last = kernel.axes.at(-1)
  if (last === undefined) return false
  const multiples = multiplesOf(own)
  let count = 0
  let isAlong = false
  const see = (load: ExprOf<'load'>): void => {
    const tensor = own.tensors.find(({ name }) => name === load.tensor)
    if (tensor === undefined || !kernel.loops.some(({ index }) => usesIndex(load, index))) return
    const offset = offsetOf(tensor, load.indices, dims)
    isAlong ||= kernel.loops.some(({ index }) => classify(offset, index, multiples).kind === 'contiguous')
    if (classify(offset, last.index, multiples).kind === 'contiguous') count++
  }
  const exprs = [...[...kernel.rows.values()].flatMap(rowExprs), ...kernel.statements.flatMap((s) => scheduledOf(s).values(s))]
  for (const expr of exprs)
    visit(expr, (node) => {
      if (node.kind === 'load') see(node)
    })
  return count > 0 && !isAlong
}
