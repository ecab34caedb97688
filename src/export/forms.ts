/**
 * Sizes as expressions of a program's dimensions, for the text of an export: what a value of a graph is in the program that applies it,
 * how the axes of a layout lie in memory, and the strides of a product. Found once, when a program is exported.
 */
import { usageError } from '../errors.js'
import { type DType, dtypeInfo } from '../ir/dtype.js'
import type { Graph, NodeOf, ValueId } from '../ir/graph.js'
import { resolveDType } from '../ir/instance.js'
import { type Extent, multiplyExtents, type Shape } from '../ir/shape.js'
import { substitute, substituteShape } from '../lang/program_match.js'
import type { GraphApplication } from '../runtime/application.js'
import { findLayout, type Layouts, layoutSize, layoutStrides } from '../runtime/layouts.js'

export type Known = Readonly<Record<string, Extent>>

export const constant = (factor: number): Extent => ({ factor, dims: [] })

/** A value with its extents in the dimensions that an export leaves open. */
export interface Form {
  readonly dtype: DType
  readonly shape: Shape
  readonly layout: string
}

/** How values of one application read in the program's dimensions, those that are fixed replaced by their sizes. */
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

/** Bytes of a value's memory. @throws usage `export.layout` for a layout that is larger than its elements */
export function bytesOf({ dtype, shape, layout }: Form, layouts: Layouts): Extent {
  if (layout !== 'row' && !trials(shape.length).every((extents) => isDense(layouts, layout, extents)))
    throw usageError('export.layout', `a value in layout ${layout} takes more memory than its elements have`, {
      hint: 'export a plan that stores values without padding of layouts: the text of a layout is not part of an export',
    })
  return multiplyExtents([...shape, constant(dtypeInfo[dtype].bytes)])
}

const isDense = (layouts: Layouts, layout: string, extents: readonly number[]): boolean =>
  layoutSize(findLayout(layouts, layout, extents.length), extents) === product(extents)

const product = (values: readonly number[]): number => values.reduce((all, value) => all * value, 1)

/** Extents that tell layouts apart: small, odd and even, and different from each other. */
const sizes = [
  [5, 3, 7, 4, 2, 6],
  [2, 9, 3, 8, 5, 4],
  [7, 2, 4, 3, 6, 5],
]
const trials = (rank: number): number[][] => sizes.map((extents) => extents.slice(0, rank))

/** The axes of a layout from the outermost to the innermost; undefined for a layout that is no order of axes. */
export function orderOf(layouts: Layouts, layout: string, rank: number): readonly number[] | undefined {
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

/** An operand of a product: names of its axes, their extents, and their order in memory. */
interface Operand {
  readonly name: string
  readonly axes: readonly string[]
  readonly form: Form
  readonly order: readonly number[]
}

/**
 * 4 extents of a product, batch, m, n and k, and the strides of its three operands along batch and their two other groups of axes.
 * @throws usage `export.matmul` for axes that do not lie side by side
 */
export function productNumbers(label: string, scope: Scope, node: NodeOf<'matmul'>, layouts: Layouts): readonly Extent[] {
  const operand = (name: 'a' | 'b' | 'out'): Operand => {
    const form = formOf(scope, node[name])
    const order = orderOf(layouts, form.layout, form.shape.length)
    if (order === undefined)
      throw usageError('export.matmul', `${label}: ${name} is in layout ${form.layout}, which is no order of axes`)
    return { name, axes: node.subscripts[name], form, order }
  }
  const [a, b, out] = [operand('a'), operand('b'), operand('out')]
  const has = (each: Operand) => (axis: string) => each.axes.includes(axis)
  const not = (each: Operand) => (axis: string) => !each.axes.includes(axis)
  const shared = a.axes.filter(has(b))
  const batch = groupOf(label, shared.filter(has(out)), [a, b, out])
  const k = groupOf(label, shared.filter(not(out)), [a, b])
  const m = groupOf(label, a.axes.filter(not(b)), [a, out])
  const n = groupOf(label, b.axes.filter(not(a)), [b, out])
  const along = (each: Operand, groups: readonly Group[]): Extent[] =>
    groups.map(({ strides }) => strides.get(each.name) ?? constant(0))
  return [
    ...[batch.extent, m.extent, n.extent, k.extent],
    ...along(a, [batch, m, k]),
    ...along(b, [batch, n, k]),
    ...along(out, [batch, m, n]),
  ]
}

interface Group {
  readonly extent: Extent
  readonly strides: ReadonlyMap<string, Extent>
}

/** Axes that are one: in every operand that has them, they lie side by side in the same order. Axes of one element are nowhere. */
function groupOf(label: string, axes: readonly string[], operands: readonly Operand[]): Group {
  const isOne = ({ factor, dims }: Extent): boolean => factor === 1 && dims.length === 0
  const laid = operands.map((operand) => {
    const memory = operand.order.map((at) => ({ axis: operand.axes[at] ?? '', extent: operand.form.shape[at] ?? constant(1) }))
    const stepped = memory.filter(({ extent }) => !isOne(extent))
    const places = stepped.flatMap(({ axis }, i) => (axes.includes(axis) ? [i] : []))
    const inside = places.map((i) => stepped[i]).filter((each) => each !== undefined)
    const last = places.at(-1) ?? stepped.length
    const stride = multiplyExtents(stepped.slice(last + 1).map(({ extent }) => extent))
    const adjacent = places.every((place, i) => place === (places[0] ?? 0) + i)
    return { name: operand.name, inside, adjacent, stride: places.length === 0 ? constant(0) : stride }
  })
  const [lead] = laid
  const order = lead?.inside.map(({ axis }) => axis).join(' ') ?? ''
  const apart = laid.find(({ inside, adjacent }) => !adjacent || inside.map(({ axis }) => axis).join(' ') !== order)
  if (apart !== undefined)
    throw usageError('export.matmul', `${label}: axes ${axes.join(' ')} of ${apart.name} do not lie side by side at every size`)
  return {
    extent: multiplyExtents(lead?.inside.map(({ extent }) => extent) ?? []),
    strides: new Map(laid.map(({ name, stride }) => [name, stride])),
  }
}
