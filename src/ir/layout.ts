/**
 * A layout is a pure integer function from logical indices and extents to an element offset, with the number of elements
 * the buffer must hold. In `offset`, index variables are named after the axes and extents are `dim`s of the same names.
 *
 * A tensor may be seen in a finer shape than its layout is for: the axes then split into runs of the tensor's, `col32:2+2` being
 * `col32` over a matrix whose rows are the first two dimensions and whose columns are the other two.
 */
import type { Expr } from './expr.js'
import { rewrite, substitute } from './walk.js'

export interface Layout {
  readonly name: string
  /** Axis names, outermost first. A tensor of the same rank may use the layout, whatever its dimensions are called. */
  readonly axes: readonly string[]
  readonly offset: Expr
  /** Elements the buffer holds, padding included. */
  readonly size: Expr
}

const call = (fn: 'add' | 'mul', a: Expr, b: Expr): Expr => ({ kind: 'call', type: 'i32', fn, args: [a, b] })
const one: Expr = { kind: 'const', type: 'i32', value: 1 }

/** Row-major over the given axes: the last axis is contiguous. */
export function rowMajor(axes: readonly string[]): Layout {
  let offset: Expr | undefined
  let size: Expr | undefined
  for (const name of axes) {
    const index: Expr = { kind: 'index', type: 'i32', name }
    const dim: Expr = { kind: 'dim', type: 'i32', name }
    offset = offset === undefined ? index : call('add', call('mul', offset, dim), index)
    size = size === undefined ? dim : call('mul', size, dim)
  }
  return { name: 'row', axes, offset: offset ?? { kind: 'const', type: 'i32', value: 0 }, size: size ?? one }
}

/** The name of a layout whose axes are split into runs of the given lengths. */
export const splitLayoutName = (name: string, runs: readonly number[]): string =>
  runs.every((run) => run === 1) || name === 'row' ? name : `${name}:${runs.join('+')}`

/** The layout a name is made of, and how its axes are split; undefined where they are not. */
export function parseLayoutName(text: string): { readonly name: string; readonly runs: readonly number[] | undefined } {
  const [name = '', runs] = text.split(':')
  return { name, runs: runs?.split('+').map(Number) }
}

/** A layout over finer axes: each of its axes is the row-major combination of a run of them. */
export function splitLayout(layout: Layout, runs: readonly number[], axes: readonly string[]): Layout {
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
