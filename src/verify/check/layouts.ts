/** Layouts as functions, made from their IR. */
import { integerFunction } from '../../ir/integer_function.js'
import type { Layout } from '../../ir/layout.js'
import type { LayoutDecl } from '../../lang/layout.js'
import type { Layouts } from '../../runtime/layouts.js'

/** Declared layouts by name. */
export const runtimeLayouts = (layouts: readonly Layout[]): Layouts =>
  Object.fromEntries(layouts.map((layout) => [layout.name, layoutOf(layout)]))

function layoutOf({ name, axes, offset, size }: Layout): LayoutDecl {
  // Indices come first, then extents.
  const index = new Map(axes.map((axis, at) => [axis, at]))
  const dim = new Map(axes.map((axis, at) => [axis, axes.length + at]))
  const offsetAt = integerFunction(offset, { index, dim })
  const sizeOf = integerFunction(size, { index, dim })
  const values = (of: Readonly<Record<string, number>>): number[] => axes.map((axis) => of[axis] ?? 0)
  return {
    name,
    axes,
    offset: (at, extent) => offsetAt([...values(at), ...values(extent)]),
    size: (extent) => sizeOf([...values({}), ...values(extent)]),
  }
}
