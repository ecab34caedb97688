/**
 * Memory order of the matrices of a tensor, for the loads of a matmul's main loop: one of a few orders, at a fixed distance. Found
 * by evaluating the layout's function, never from its name, when a matmul kernel is emitted.
 */
import { i32, index } from './build.js'
import { forEachPoint } from './evaluate.js'
import type { Expr } from './expr.js'
import { integerFunction } from './integer_function.js'
import type { TensorParam } from './kernel.js'
import { extentsToTry } from './layout_proof.js'
import { rewrite, substitute } from './walk.js'

/** Offset of (row, column) in one matrix. `pitch` is the number of elements from a row (`row`) or a panel of 32 columns to the next. */
const orders = {
  row: (r: number, c: number, pitch: number) => r * pitch + c,
  col32: (r: number, c: number, pitch: number) => (c >> 5) * pitch + r * 32 + (c & 31),
  col4_4r2_8c: (r: number, c: number, pitch: number) =>
    (c >> 5) * pitch + (r >> 3) * 256 + (r & 1) * 128 + ((c & 31) >> 2) * 16 + ((r & 7) >> 1) * 4 + (c & 3),
  col32_2r_4r4: (r: number, c: number, pitch: number) =>
    (c >> 5) * pitch + (r >> 5) * 1024 + ((((r & 7) >> 1) * 4 + ((r & 31) >> 3)) * 2 + (r & 1)) * 32 + (c & 31),
} as const

export type MatrixOrder = keyof typeof orders

/** The axes of a tensor by role; a point of `batch`, outermost first, is one matrix. */
export interface MatrixAxes {
  readonly batch: readonly string[]
  readonly row: string
  readonly column: string
}

export interface Matrices {
  readonly order: MatrixOrder
  /** Logical indices of the elements whose offsets are the pitch, and the distance from a matrix to the next. */
  readonly pitchAt: readonly Expr[]
  readonly nextAt: readonly Expr[]
}

/** Elements evaluated for one order; the layout itself is proved with more. */
const budget = 20_000

/** Order of a tensor's matrices; undefined if it is none of the known ones, or if the matrices are not at a fixed distance. */
export function matricesOf(tensor: TensorParam, axes: MatrixAxes): Matrices | undefined {
  return (Object.keys(orders) as MatrixOrder[]).map((order) => asOrder(tensor, axes, order)).find((found) => found !== undefined)
}

function asOrder(tensor: TensorParam, { batch, row, column }: MatrixAxes, order: MatrixOrder): Matrices | undefined {
  const at = (values: Readonly<Record<string, number>>): readonly Expr[] => tensor.dims.map((name) => i32(values[name] ?? 0))
  const inner = batch.at(-1)
  const pitchAt = at(order === 'row' ? { [row]: 1 } : { [column]: 32 })
  const nextAt = at(inner === undefined ? {} : { [inner]: 1 })
  const { layout, dims } = tensor
  const names = new Map(layout.axes.map((axis, i) => [axis, dims[i] ?? axis]))
  const offset = rewrite(substitute(layout.offset, new Map([...names].map(([axis, name]) => [axis, index(name)]))), (node) =>
    node.kind === 'dim' ? { ...node, name: names.get(node.name) ?? node.name } : node,
  )
  const slots = (from: number) => new Map(dims.map((name, i) => [name, from + i]))
  const evaluate = integerFunction(offset, { index: slots(0), dim: slots(dims.length) })
  for (const shape of extentsToTry(dims.length, budget)) {
    const extents = Object.fromEntries(dims.map((name, i) => [name, shape[i] ?? 1]))
    const offsetAt = (point: Readonly<Record<string, number>>): number =>
      evaluate([...dims.map((name) => point[name] ?? 0), ...shape])
    const pitch = offsetAt(order === 'row' ? { [row]: 1 } : { [column]: 32 })
    const next = inner === undefined ? 0 : offsetAt({ [inner]: 1 })
    let fits = true
    forEachPoint(shape, (position) => {
      if (!fits) return
      const point = Object.fromEntries(dims.map((name, i) => [name, position[i] ?? 0]))
      const matrix = batch.reduce((flat, name) => flat * (extents[name] ?? 1) + (point[name] ?? 0), 0)
      fits = offsetAt(point) === matrix * next + orders[order](point[row] ?? 0, point[column] ?? 0, pitch)
    })
    if (!fits) return undefined
  }
  return { order, pitchAt, nextAt }
}
