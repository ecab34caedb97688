/**
 * Layouts at run time: the number of elements in a tensor's buffer, and the element strides of layouts that have them.
 * Kernels have their layouts compiled in. This module serves buffer sizes and matmuls, which address operands by strides.
 */
import { usageError } from '../errors.js'
import { parseLayoutName } from '../ir/split_layout.js'
import { type LayoutDecl, rowMajorDecl } from '../lang/layout.js'

/** Declared layouts by name; `row` needs no entry. */
export type Layouts = Readonly<Record<string, LayoutDecl>>

/** Layout named by a graph value, for a tensor of the given rank. @throws usage `layout.unknown`, `layout.rank` */
export function findLayout(layouts: Layouts, text: string, rank: number): LayoutDecl {
  const { name, runs } = parseLayoutName(text)
  if (runs === undefined) return findWhole(layouts, name, rank)
  return split(findWhole(layouts, name, runs.length), runs, rank)
}

/** A layout over the axes of a finer shape: each of its axes is the row-major combination of a run of them. */
function split(layout: LayoutDecl, runs: readonly number[], rank: number): LayoutDecl {
  const axes = Array.from({ length: rank }, (_, i) => `axis${i}`)
  if (runs.reduce((total, run) => total + run, 0) !== rank) {
    throw usageError(
      'layout.rank',
      `layout ${layout.name} is split into ${runs.join('+')} axes, the tensor has ${rank} dimensions`,
    )
  }
  const parts = runs.map((run, i) => {
    const first = runs.slice(0, i).reduce((total, length) => total + length, 0)
    return { axis: layout.axes[i] ?? '', decl: rowMajorDecl(axes.slice(first, first + run)) }
  })
  type Numbers = Readonly<Record<string, number>>
  // Both records are reused for every element of a tensor: a layout's functions read them and hold no reference.
  const indices: Record<string, number> = {}
  const sizes: Record<string, number> = {}
  const index = (at: Numbers, extent: Numbers): Numbers => {
    for (const { axis, decl } of parts) indices[axis] = decl.offset(at, extent)
    return indices
  }
  const extents = (extent: Numbers): Numbers => {
    for (const { axis, decl } of parts) sizes[axis] = decl.size(extent)
    return sizes
  }
  return {
    name: layout.name,
    axes,
    offset: (at, extent) => layout.offset(index(at, extent), extents(extent)),
    size: (extent) => layout.size(extents(extent)),
  }
}

function findWhole(layouts: Layouts, name: string, rank: number): LayoutDecl {
  if (name === 'row') return rowMajorDecl(Array.from({ length: rank }, (_, i) => `axis${i}`))
  const layout = layouts[name]
  if (layout === undefined) {
    throw usageError('layout.unknown', `unknown layout ${name}`, {
      hint: `known: ${['row', ...Object.keys(layouts)].join(', ')}; a layout that only a plan names comes with the plan: load(graph, { plan: myPlan })`,
    })
  }
  if (layout.axes.length !== rank) {
    throw usageError('layout.rank', `layout ${name} has axes ${layout.axes.join(' ')}, the tensor has ${rank} dimensions`)
  }
  return layout
}

const named = (layout: LayoutDecl, values: readonly number[]): Record<string, number> =>
  Object.fromEntries(layout.axes.map((axis, i) => [axis, values[i] ?? 0]))

/** Elements the buffer of a tensor holds, padding included. */
export const layoutSize = (layout: LayoutDecl, extents: readonly number[]): number => layout.size(named(layout, extents))

/** Element offset of a logical index. */
export const layoutOffset = (layout: LayoutDecl, index: readonly number[], extents: readonly number[]): number =>
  layout.offset(named(layout, index), named(layout, extents))

/** Up to this many elements every index is checked; above, lines, corners and a fixed sample of indices. */
const exhaustive = 4096
const samples = 512

/**
 * Element strides of a layout at the given extents, one per axis, or undefined when no strides describe it (tiles, swizzles,
 * a base offset). An axis of extent 1 has stride 0.
 */
export function layoutStrides(layout: LayoutDecl, extents: readonly number[]): readonly number[] | undefined {
  const at = (index: readonly number[]): number => layoutOffset(layout, index, extents)
  const origin = extents.map(() => 0)
  if (at(origin) !== 0) return undefined
  const strides = extents.map((extent, axis) => (extent > 1 ? at(origin.with(axis, 1)) : 0))
  const linear = (index: readonly number[]): boolean =>
    at(index) === index.reduce((offset, i, axis) => offset + i * (strides[axis] ?? 0), 0)
  return indicesToCheck(extents).every(linear) ? strides : undefined
}

/** Strides of tensors, memoised by layout and extents: models multiply the same shapes in every layer. */
const known = new WeakMap<Layouts, Map<string, readonly number[] | undefined>>()

/**
 * `layoutStrides` of a tensor by the name of its layout. Row-major strides follow from the extents; others are searched for once.
 * @throws usage `layout.unknown`, `layout.rank`
 */
export function stridesOf(layouts: Layouts, text: string, extents: readonly number[]): readonly number[] | undefined {
  if (text === 'row') {
    return extents.map((extent, axis) => (extent > 1 ? extents.slice(axis + 1).reduce((product, more) => product * more, 1) : 0))
  }
  const found = known.get(layouts) ?? new Map<string, readonly number[] | undefined>()
  known.set(layouts, found)
  const key = `${text} ${extents.join()}`
  if (!found.has(key)) found.set(key, layoutStrides(findLayout(layouts, text, extents.length), extents))
  return found.get(key)
}

function indicesToCheck(extents: readonly number[]): number[][] {
  const total = extents.reduce((product, extent) => product * extent, 1)
  const unflatten = (flat: number): number[] => {
    let rest = flat
    return extents
      .map((_, i) => extents.length - 1 - i)
      .map((axis) => {
        const extent = extents[axis] ?? 1
        const index = rest % extent
        rest = Math.floor(rest / extent)
        return index
      })
      .reverse()
  }
  if (total <= exhaustive) return Array.from({ length: total }, (_, flat) => unflatten(flat))
  const last = extents.map((extent) => extent - 1)
  const lines = extents.flatMap((extent, axis) =>
    Array.from({ length: extent }, (_, i) => [extents.map((_, other) => (other === axis ? i : 0)), last.with(axis, i)]).flat(),
  )
  // Steps of the golden ratio spread the sample evenly and make the check reproducible.
  const spread = Array.from({ length: samples }, (_, i) => unflatten(Math.floor((((i + 1) * 0.6180339887498949) % 1) * total)))
  return [...lines, ...spread]
}
