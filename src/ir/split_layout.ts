/**
 * Layouts of tensors whose shape is finer than the layout's: each of its axes is a run of the tensor's. `col32:2+2` is
 * `col32` over a matrix whose rows are the first two dimensions and whose columns are the other two.
 */
import type { Expr } from './expr.js'
import { axisNames, type Layout, rowMajor } from './layout.js'
import { rewrite, substitute } from './walk.js'

/** Name of a layout whose axes are split into runs of the given lengths. */
export const splitLayoutName = (name: string, runs: readonly number[]): string =>
  runs.every((run) => run === 1) || name === 'row' ? name : `${name}:${runs.join('+')}`

/** Base layout of a name, and the lengths of its runs; undefined if its axes are not split. */
export function parseLayoutName(text: string): { readonly name: string; readonly runs: readonly number[] | undefined } {
  const [name = '', runs] = text.split(':')
  return { name, runs: runs?.split('+').map(Number) }
}

/** A layout over finer axes: each of its axes is the row-major combination of a run of them. */
export function splitLayout(layout: Layout, runs: readonly number[], dims: readonly string[]): Layout {
  const axes = axisNames(dims)
  let at = 0
  const indices = new Map<string, Expr>()
  const extents = new Map<string, Expr>()
  for (const [i, axis] of layout.axes.entries()) {
    const part = axes.slice(at, at + (runs[i] ?? 0))
    at += part.length
    const combined = rowMajor(part)
    indices.set(axis, combined.offset)
    extents.set(axis, combined.size)
  }
  const split = (expr: Expr): Expr => substitute(substituteExtents(expr, extents), indices)
  return { name: splitLayoutName(layout.name, runs), axes, offset: split(layout.offset), size: split(layout.size) }
}

const substituteExtents = (expr: Expr, extents: ReadonlyMap<string, Expr>): Expr =>
  rewrite(expr, (node) => (node.kind === 'dim' ? (extents.get(node.name) ?? node) : node))
