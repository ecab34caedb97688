/** Conversion between row-major order on the host and the order of a declared layout on the device. Padding elements of a layout are 0. */

import type { DType } from '../../ir/dtype.js'
import type { LayoutDecl } from '../../lang/layout.js'
import type { TensorArrays } from './tensor.js'

type Elements = TensorArrays[DType]

/** Number of elements of a tensor in a layout, padding included; row-major if undefined. */
export const elementsIn = (layout: LayoutDecl | undefined, shape: readonly number[]): number =>
  layout === undefined ? shape.reduce((product, extent) => product * extent, 1) : layout.size(named(layout, shape))

/** Converts row-major elements to the order of a layout. */
export function inLayout<A extends Elements>(data: A, layout: LayoutDecl, shape: readonly number[]): A {
  const ordered = arrayLike(data, elementsIn(layout, shape))
  forEachOffset(layout, shape, (row, offset) => {
    ordered[offset] = data[row] ?? 0
  })
  return ordered
}

/** Converts elements in the order of a layout to row-major order. */
export function inRows<A extends Elements>(data: A, layout: LayoutDecl, shape: readonly number[]): A {
  const ordered = arrayLike(data, elementsIn(undefined, shape))
  forEachOffset(layout, shape, (row, offset) => {
    ordered[row] = data[offset] ?? 0
  })
  return ordered
}

const arrayLike = <A extends Elements>(data: A, length: number): A => new (data.constructor as new (length: number) => A)(length)

const named = (layout: LayoutDecl, values: readonly number[]): Record<string, number> =>
  Object.fromEntries(layout.axes.map((axis, i) => [axis, values[i] ?? 0]))

/** Calls `visit` with the row-major position of every element and its offset in the layout. */
function forEachOffset(layout: LayoutDecl, shape: readonly number[], visit: (row: number, offset: number) => void): void {
  const count = elementsIn(undefined, shape)
  const extents = named(layout, shape)
  // The record is reused for every element: a layout's functions read it and hold no reference.
  const index = named(layout, [])
  const axes = layout.axes.map((axis, i) => [axis, shape[i] ?? 1] as const).reverse()
  for (let row = 0; row < count; row++) {
    visit(row, layout.offset(index, extents))
    for (const [axis, extent] of axes) {
      const next = (index[axis] ?? 0) + 1
      index[axis] = next === extent ? 0 : next
      if (next !== extent) break
    }
  }
}
