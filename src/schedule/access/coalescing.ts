/**
 * Coalescing of recurrences and of team scalars: decides whether the elements of a row are adjacent in memory, so that its lanes read together, or
 * the rows, which calls for one thread per row. Used for kernels in which either is possible.
 */
import type { Expr, ExprOf } from '../../ir/expr.js'
import type { Instance } from '../../ir/instance.js'
import { freeNames, visit } from '../../ir/walk.js'
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

/**
 * True if the elements of team scalars, as of segments of columns, are contiguous from row to row, and not along the row. Loads that are the same for
 * neighbouring rows, such as a list of indices, decide nothing.
 */
export function scalarsAreNeighbours({ kernel: own, dims }: Instance, { axes, statements }: NormalKernel): boolean {
  const last = axes.at(-1)
  if (last === undefined) return false
  const multiples = multiplesOf(own)
  const varying = new Set([last.index])
  const varies = (expr: Expr): boolean => [...freeNames(expr)].some((name) => varying.has(name))
  const found: { readonly isAcross: boolean; readonly isAlong: boolean }[] = []
  for (const s of statements) {
    if (s.kind === 'let' && varies(s.value)) varying.add(s.name)
    if (s.kind !== 'team') continue
    for (const value of scheduledOf(s).values(s))
      visit(value, (load) => {
        const tensor = load.kind === 'load' ? own.tensors.find(({ name }) => name === load.tensor) : undefined
        if (load.kind !== 'load' || tensor === undefined || !usesIndex(load, s.loop.index) || !varies(load)) return
        const offset = offsetOf(tensor, load.indices, dims)
        const isContiguous = (index: string): boolean => classify(offset, index, multiples).kind === 'contiguous'
        found.push({ isAcross: isContiguous(last.index), isAlong: isContiguous(s.loop.index) })
      })
  }
  return found.some(({ isAcross }) => isAcross) && !found.some(({ isAlong }) => isAlong)
}
