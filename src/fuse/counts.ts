/**
 * Maps sizes of a group's members to those of the kernel derived from them. A member's tensors are values of the graph, its dimensions are
 * extents of those, and the kernel's parameters are bound to the same values.
 */
import { type Count, type Facts, longestSequence, renameCount } from '../ir/facts/facts.js'
import { getOwn } from '../ir/get_own.js'
import type { AttrValue, Graph, NodeOf, ValueId } from '../ir/graph.js'
import type { Kernel } from '../ir/kernel.js'
import { type Extent, printExtent, sameExtent } from '../ir/shape.js'
import type { TemplateKernel } from '../ir/template.js'
import { aliasesOf } from './graph/edit.js'
import { packingOf } from './graph/pack.js'
import type { Derived } from './rows/derive.js'

/** A member with its facts. Its node maps the op's names to values of the graph. */
export interface Member {
  readonly node: NodeOf<'op'>
  readonly kernel: Kernel
  readonly facts: Facts
}

export class Counts {
  readonly #graph: Graph
  readonly #derived: Derived<Kernel | TemplateKernel>
  /** Extents in the graph by dimension of the kernel. */
  readonly extents: ReadonlyMap<string, Extent>

  constructor(graph: Graph, derived: Derived<Kernel | TemplateKernel>) {
    this.#graph = graph
    this.#derived = derived
    const extents = new Map<string, Extent>()
    for (const { param, shape } of [...derived.inputs, ...derived.outputs]) {
      const dims = derived.kernel.tensors.find(({ name }) => name === param)?.dims ?? []
      dims.forEach((dim, axis) => {
        const extent = shape[axis]
        // Composite extents of a whole graph are expressed by their dimensions.
        if (extent !== undefined && !dim.includes('*')) extents.set(dim, extent)
      })
    }
    this.extents = extents
  }

  /** The kernel's input for a value, under any shape. */
  input(id: ValueId | undefined): string | undefined {
    if (id === undefined) return undefined
    const aliases = aliasesOf(this.#graph.nodes, id)
    return this.#derived.inputs.find(({ value }) => aliases.has(value))?.param
  }

  /** Converts a count of a member's sizes to one of the kernel's sizes. */
  of(member: Member, count: Count): Count | undefined {
    return renameCount(count, (name) => {
      const attr = member.kernel.attrs.find((each) => each.name === name)
      return attr === undefined ? this.#dim(member, name) : this.#attr(getOwn(member.node.attrs, name) ?? attr.default)
    })
  }

  #attr(value: AttrValue): Count | undefined {
    if (typeof value === 'number') return value
    if ('dim' in value) return this.extent({ factor: 1, dims: [value.dim] })
    return Object.entries(this.#derived.attrs).find(([, other]) => sameAttr(other, value))?.[0]
  }

  #dim({ node, kernel }: Member, name: string): Count | undefined {
    let extent: Extent | undefined
    for (const { name: tensor, dims } of kernel.tensors) {
      const axis = dims.indexOf(name)
      const id = node.inputs[tensor] ?? node.outputs[tensor]
      if (axis < 0 || id === undefined) continue
      const shape = this.#graph.values[id]?.shape ?? []
      extent ??= shape[axis]
      const param = this.input(id)
      const bound = this.#derived.inputs.find((each) => each.param === param)
      if (bound?.shape.length !== shape.length) continue
      const dim = this.#derived.kernel.tensors.find((each) => each.name === param)?.dims[axis]
      if (dim !== undefined && !dim.includes('*')) return dim
    }
    return this.extent(extent)
  }

  /** An extent of the graph as a count of the kernel's sizes. */
  extent(extent: Extent | undefined): Count | undefined {
    if (extent === undefined) return undefined
    if (extent.dims.length === 0) return extent.factor
    const whole = this.#named(extent)
    if (whole !== undefined) return whole
    const factors = extent.dims.map((dim) => this.#named({ factor: 1, dims: [dim] }))
    if (factors.some((factor) => factor === undefined)) return undefined
    const counts = factors.flatMap((factor) => factor ?? [])
    return productOf(extent.factor, counts)
  }

  #named(extent: Extent): string | undefined {
    const dim = [...this.extents].find(([, other]) => sameExtent(extent, other))?.[0]
    if (dim !== undefined) return dim
    const [only] = extent.dims
    const given = extent.factor === 1 && extent.dims.length === 1 ? only : undefined
    const attr = Object.entries(this.#derived.attrs).find(
      ([, value]) => typeof value === 'object' && 'dim' in value && value.dim === given,
    )
    if (attr !== undefined) return attr[0]
    const packing = packingOf(this.#graph)
    return packing !== undefined && printExtent(packing.seq) === printExtent(extent) ? longestSequence : undefined
  }
}

/** Product of a factor and counts. */
export const productOf = (factor: number, counts: readonly Count[]): Count =>
  counts.reduce<Count>((left, right) => (left === 1 ? right : ['mul', left, right]), factor)

export const sameAttr = (a: AttrValue | undefined, b: AttrValue | undefined): boolean =>
  a !== undefined && JSON.stringify(a) === JSON.stringify(b)
