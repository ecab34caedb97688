/**
 * Layouts: pure integer functions from logical indices and extents to an element offset, with the number of elements that
 * the buffer must hold. In `offset`, index variables are named after the axes and extents are `dim`s of the same names.
 */
import type { Expr } from './expr.js'

export interface Layout {
  readonly name: string
  /** Axis names, outermost first. Any tensor of the same rank may use the layout, under any names of its dimensions. */
  readonly axes: readonly string[]
  readonly offset: Expr
  /** Elements the buffer holds, padding included. */
  readonly size: Expr
}

const call = (fn: 'add' | 'mul', a: Expr, b: Expr): Expr => ({ kind: 'call', type: 'i32', fn, args: [a, b] })
const one: Expr = { kind: 'const', type: 'i32', value: 1 }

/** Unique axis names for a tensor's dimensions: a square matrix has one dimension twice, and two axes. */
export function axisNames(dims: readonly string[]): readonly string[] {
  const taken = new Set(dims)
  return dims.map((name, at) => {
    if (dims.indexOf(name) === at) return name
    let unique = `${name}_${at}`
    while (taken.has(unique)) unique = `${unique}_`
    taken.add(unique)
    return unique
  })
}

/** Row-major over the given dimensions: the last axis is contiguous. */
export function rowMajor(dims: readonly string[]): Layout {
  const axes = axisNames(dims)
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
