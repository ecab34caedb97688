/** Parameters of a fused kernel: the tensors and attributes of its members, named once, over the group's atoms. */
import { i32 } from '../../ir/build.js'
import type { DType } from '../../ir/dtype.js'
import type { Expr } from '../../ir/expr.js'
import { getOwn } from '../../ir/get_own.js'
import type { AttrValue, Graph, ValueId } from '../../ir/graph.js'
import type { AttrParam, Kernel, TensorParam } from '../../ir/kernel.js'
import { type Layout, rowMajor } from '../../ir/layout.js'
import { dimsIn, type Extent, evaluateExtent, printShape, type Shape } from '../../ir/shape.js'
import { parseLayoutName, splitLayout } from '../../ir/split_layout.js'
import { aliasesOf, type LayoutsByName, runsBetween } from '../graph/edit.js'
import type { Names } from './names.js'
import { boundValue, illegal, type Member, type Space } from './space.js'

/** A parameter of the fused kernel, the graph value it stands for, and the shape the kernel sees it in. */
export interface Binding {
  readonly param: string
  readonly value: ValueId
  readonly shape: Shape
}

interface Declared extends Binding {
  readonly tensor: TensorParam
}

/** Storage types that every member allows, by the graph's type parameter. @throws usage `plan.illegal` where members have none in common */
export function commonTypes(group: string, members: readonly Member[]): Readonly<Record<string, readonly DType[]>> {
  const types: Record<string, { readonly choices: readonly DType[]; readonly by: string }> = {}
  for (const { node, kernel } of members) {
    for (const [param, choices] of Object.entries(kernel.types)) {
      const ref = node.types[param]
      if (typeof ref !== 'object') continue
      const before = types[ref.param]
      const both = before?.choices.filter((choice) => choices.includes(choice)) ?? choices
      if (before !== undefined && both.length === 0) {
        const [one, other] = [before.choices, choices].map((list) => list.join(', '))
        const reason = `${node.name} takes ${other}, and the nodes before it take ${one}: they have no storage type in common`
        throw illegal(group, before.by, node.name, reason)
      }
      types[ref.param] = { choices: both, by: node.name }
    }
  }
  return Object.fromEntries(Object.entries(types).map(([param, { choices }]) => [param, choices]))
}

/** True if two attributes are the same attribute or dimension of the graph. Equal numbers are not: each is its own. */
const sameValue = (a: AttrValue | undefined, b: AttrValue): boolean =>
  typeof a === 'object' && typeof b === 'object' && JSON.stringify(a) === JSON.stringify(b)

export class Parameters {
  readonly attrs: AttrParam[] = []
  readonly attrValues: Record<string, AttrValue> = {}
  readonly #extents = new Map<string, Extent>()
  /** Declared tensors. A value that members see in different parts has one tensor per shape. */
  readonly #declared: Declared[] = []
  readonly #graph: Graph
  readonly #group: string
  readonly #space: Space
  readonly #names: Names
  readonly #layouts: LayoutsByName

  constructor(graph: Graph, group: string, space: Space, names: Names, layouts: LayoutsByName) {
    this.#layouts = layouts
    this.#graph = graph
    this.#group = group
    this.#space = space
    this.#names = names
  }

  /** The fused kernel's name of an input of a member; members that read the same value share it. */
  input(member: Member, param: TensorParam): string {
    const value = boundValue(member, param.name)
    const shape = printShape(this.#atomsOf(member, param).map((atom) => this.#space.axes.extent(atom)))
    const known = this.#declared.find((other) => other.value === value && printShape(other.shape) === shape)
    return known?.param ?? this.#declare(member, param, value, 'in')
  }

  /** The fused kernel's name of a result of a member. One that updates an input updates it in the fused kernel. */
  output(member: Member, param: TensorParam): string {
    const { updates } = param
    const updated = updates === undefined ? undefined : boundValue(member, updates)
    const before = this.#declared.find(({ value }) => value === updated)
    if (updates !== undefined && before?.tensor.access !== 'in') {
      throw illegal(this.#group, member.node.name, member.node.name, `${updates}, which it updates, is computed by the group`)
    }
    const twin = this.#declared.find(({ tensor }) => tensor.updates !== undefined && tensor.updates === before?.param)
    if (twin !== undefined)
      throw illegal(
        this.#group,
        member.node.name,
        member.node.name,
        `${updates}, which it updates, is updated by ${twin.param} too`,
      )
    return this.#declare(member, param, boundValue(member, param.name), 'out', before?.param)
  }

  /**
   * An attribute of a member: a parameter of the fused kernel, or the number itself where the graph fixes an integer. An attribute of
   * the graph is one parameter, however many members take it.
   */
  attr(member: Member, attr: AttrParam): Expr {
    const given = getOwn(member.node.attrs, attr.name) ?? attr.default
    if (attr.type === 'i32' && typeof given === 'number') return i32(given)
    const known = this.attrs.find(({ name, type }) => type === attr.type && sameValue(this.attrValues[name], given))
    if (known !== undefined) return { kind: 'attr', type: attr.type, name: known.name }
    const name = this.#names.fresh(attr.name)
    this.attrs.push({ ...attr, name })
    this.attrValues[name] = given
    return { kind: 'attr', type: attr.type, name }
  }

  /** Inputs first, in the order of launchers. */
  tensors(): readonly TensorParam[] {
    const all = this.#declared.map(({ tensor }) => tensor)
    return [...all.filter(({ access }) => access === 'in'), ...all.filter(({ access }) => access === 'out')]
  }

  bindings(access: 'in' | 'out'): readonly Binding[] {
    return this.#declared
      .filter(({ tensor }) => tensor.access === access)
      .map(({ param, value, shape }) => ({ param, value, shape }))
  }

  /** Type parameters of the tensors, with the storage types that every member allows. */
  types(members: readonly Member[]): Kernel['types'] {
    const used = new Set(this.tensors().flatMap(({ dtype }) => (typeof dtype === 'string' ? [] : [dtype.param])))
    const allowed = Object.entries(commonTypes(this.#group, members))
    return Object.fromEntries(allowed.filter(([param]) => used.has(param)))
  }

  /** Typical sizes of the kernel's dimensions, where the graph states them. */
  typical(): Readonly<Record<string, number>> {
    const known = this.#graph.typical ?? {}
    const isKnown = (extent: Extent) => dimsIn([extent]).every((dim) => known[dim] !== undefined)
    return Object.fromEntries(
      [...this.#extents].flatMap(([dim, extent]) => (isKnown(extent) ? [[dim, evaluateExtent(extent, known)]] : [])),
    )
  }

  #atomsOf(member: Member, { dims }: TensorParam): readonly number[] {
    return dims.flatMap((dim) => [...this.#space.atomsOf(member, dim)])
  }

  /** Declares a tensor over atoms. */
  #declare(member: Member, param: TensorParam, value: ValueId, access: 'in' | 'out', updates?: string): string {
    const atoms = this.#atomsOf(member, param)
    const dims = atoms.map(this.#names.atom)
    const shape = atoms.map((atom) => this.#space.axes.extent(atom))
    for (const atom of atoms) this.#extents.set(this.#names.atom(atom), this.#space.axes.extent(atom))
    const name = this.#names.fresh(param.name)
    const dtype = this.#graph.values[value]?.dtype ?? param.dtype
    const layout = this.#layoutOf(member, param, value, shape, dims)
    const tensor: TensorParam = { name, access, dtype, dims, layout, ...(updates === undefined ? {} : { updates }) }
    this.#declared.push({ param: name, value, tensor, shape })
    return name
  }

  /** The layout of a value over a shape that splits the axes of the layout's own shape. */
  #layoutOf(member: Member, param: TensorParam, value: ValueId, shape: Shape, dims: readonly string[]): Layout {
    const { name } = parseLayoutName(this.#graph.values[value]?.layout ?? 'row')
    if (name === 'row') return rowMajor(dims)
    const layout = param.layout.name === name ? param.layout : this.#layouts.get(name)
    const stored = [...aliasesOf(this.#graph.nodes, value)]
      .map((id) => this.#graph.values[id]?.shape ?? [])
      .find((candidate) => candidate.length === layout?.axes.length)
    const runs = stored === undefined ? undefined : runsBetween(stored, shape)
    if (layout === undefined || runs === undefined) {
      const seen = `"${printShape(shape)}"`
      throw illegal(this.#group, member.node.name, member.node.name, `layout ${name} of ${param.name} is not one of ${seen}`)
    }
    return runs.every((run) => run === 1) ? layout : splitLayout(layout, runs, dims)
  }
}
