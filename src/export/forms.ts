/**
 * Values in a program's dimensions, for the source of an export. A form has the shape of a graph's value in the program that applies the graph, the
 * memory it takes, and the order of its axes there. Computed once, when a program is exported.
 */
import type { LayoutForm } from '../emit/manifest/layout_forms.js'
import { usageError } from '../errors.js'
import { type DType, dtypeInfo } from '../ir/dtype.js'
import { getOwn } from '../ir/get_own.js'
import type { Graph, ValueId } from '../ir/graph.js'
import { resolveDType } from '../ir/instance.js'
import { type Extent, multiplyExtents, type Shape } from '../ir/shape.js'
import { substitute, substituteShape } from '../lang/program/match.js'
import type { GraphApplication } from '../runtime/application.js'
import { findLayout, type Layouts, layoutSize, layoutStrides } from '../runtime/layouts.js'
import { constant, placed, type Size, times } from './sizes.js'

export type Known = Readonly<Record<string, Extent>>

/** A value with its extents in the dimensions that an export leaves open. */
export interface Form {
  readonly dtype: DType
  readonly shape: Shape
  readonly layout: string
}

/** Mapping from values of one application to the program's dimensions. Fixed dimensions are replaced by their sizes. */
export interface Scope {
  readonly graph: Graph
  readonly dims: Known
  readonly fixed: Known
  readonly types: Readonly<Record<string, DType>>
}

export function scopeOf({ graph, dims = {}, types = {} }: GraphApplication, fixed: Known, given: Scope['types']): Scope {
  const own = Object.entries(types).map(([param, type]) => [param, resolveDType(type, given)] as const)
  return { graph, dims, fixed, types: { ...given, ...Object.fromEntries(own) } }
}

export const extentIn = ({ dims, fixed }: Scope, extent: Extent): Extent => substitute(substitute(extent, dims), fixed)

export function formOf(scope: Scope, id: ValueId): Form {
  const value = scope.graph.values[id]
  if (value === undefined) throw new Error(`internal: graph ${scope.graph.name} has no value ${id}`)
  const { dims, fixed, types } = scope
  return {
    dtype: resolveDType(value.dtype, types),
    shape: substituteShape(substituteShape(value.shape, dims), fixed),
    layout: value.layout,
  }
}

/** Layouts as functions, and the memory forms that the manifest has for them. */
export interface KnownLayouts {
  readonly layouts: Layouts
  readonly forms: Readonly<Record<string, LayoutForm>>
}

/** True if a value takes more memory than its elements, at some extents. */
export const isPadded = ({ shape, layout }: Form, { layouts }: KnownLayouts): boolean =>
  layout !== 'row' && !trials(shape.length).every((extents) => isDense(layouts, layout, extents))

/** Elements of a value's memory, padding included. @throws usage `export.layout` for a layout whose padding is not an expression of its extents */
export function elementsOf(form: Form, known: KnownLayouts): Size {
  if (!isPadded(form, known)) return multiplyExtents(form.shape)
  const { layout, shape } = form
  const count = getOwn(known.forms, layout)
  if (count === undefined) {
    throw usageError('export.layout', `the memory size of a value in layout ${layout} is unknown`, {
      hint: 'write its size with + - * idiv % and shifts or masks by powers of two, and run `heddle gen`',
    })
  }
  return placed(count.size, extentsOf(count, shape))
}

/** Bytes of a value's memory. @throws usage `export.layout` */
export const bytesOf = (form: Form, known: KnownLayouts): Size => times(elementsOf(form, known), dtypeInfo[form.dtype].bytes)

const extentsOf = ({ axes }: LayoutForm, shape: Shape): Known =>
  Object.fromEntries(axes.map((axis, at) => [axis, shape[at] ?? constant(1)]))

const isDense = (layouts: Layouts, layout: string, extents: readonly number[]): boolean =>
  layoutSize(findLayout(layouts, layout, extents.length), extents) === product(extents)

const product = (values: readonly number[]): number => values.reduce((all, value) => all * value, 1)

/** Extents that distinguish layouts: small, odd and even, all different. */
const sizes = [
  [5, 3, 7, 4, 2, 6],
  [2, 9, 3, 8, 5, 4],
  [7, 2, 4, 3, 6, 5],
]
const trials = (rank: number): number[][] => sizes.map((extents) => extents.slice(0, rank))

/** Axes of a layout from the outermost to the innermost; undefined for a layout that is not an order of axes. */
function orderOf(layouts: Layouts, layout: string, rank: number): readonly number[] | undefined {
  const axes = Array.from({ length: rank }, (_, axis) => axis)
  if (layout === 'row') return axes
  const orders = trials(rank).map((extents) => {
    const strides = layoutStrides(findLayout(layouts, layout, rank), extents)
    if (strides === undefined) return undefined
    const order = axes.toSorted((a, b) => (strides[b] ?? 0) - (strides[a] ?? 0))
    const packed = order.every((axis, i) => strides[axis] === product(order.slice(i + 1).map((inner) => extents[inner] ?? 1)))
    return packed ? order : undefined
  })
  const [first] = orders
  return first !== undefined && orders.every((order) => order?.join() === first.join()) ? first : undefined
}

/** Stride in elements along each axis of a value; undefined if a stride is not constant. */
export function stridesOf({ shape, layout }: Form, { layouts, forms }: KnownLayouts): readonly Size[] | undefined {
  const order = orderOf(layouts, layout, shape.length)
  if (order !== undefined)
    return shape.map((_, axis) =>
      multiplyExtents(order.slice(order.indexOf(axis) + 1).map((inner) => shape[inner] ?? constant(1))),
    )
  const form = getOwn(forms, layout)
  return form?.strides?.map((stride) => placed(stride, extentsOf(form, shape)))
}
