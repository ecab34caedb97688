/**
 * Facts of a derived kernel: those of the group's members, in the kernel's own names. A member's tensors are values of the graph, and its
 * dimensions are extents of those. The kernel's parameters are bound to the same values, so nothing depends on how a kernel was derived. A fact
 * about a value inside of the kernel is left out: no caller has to satisfy it.
 */
import type { Count, Domain, ExtentFact, Facts, Packed } from '../ir/facts/facts.js'
import { bothDomains, longestSequence, namesOf, noFacts } from '../ir/facts/facts.js'
import { commonDivisor, factorOf, leastCommonMultiple } from '../ir/facts/multiples.js'
import { getOwn } from '../ir/get_own.js'
import { type AttrValue, type Graph, type NodeOf, outputsOf, type ValueId } from '../ir/graph.js'
import { emptyKernel, type Kernel } from '../ir/kernel.js'
import { rowMajor } from '../ir/layout.js'
import { factorsOf, sumsIntegers } from '../ir/product.js'
import { printExtent, sameExtent } from '../ir/shape.js'
import { isTemplate, type TemplateKernel } from '../ir/template.js'
import { Counts, type Member, productOf, sameAttr } from './counts.js'
import { aliasesOf } from './graph/edit.js'
import { packingOf } from './graph/pack.js'
import type { Derived } from './rows/derive.js'

/** Maximum number of elements of an attention head. */
const longestHead = 1024

type GroupNode = NodeOf<'op'> | NodeOf<'matmul'>

/** Adds the facts that follow from a kernel's group. @param ops kernels of the group's ops, by name */
export function withFacts<K extends Kernel | TemplateKernel>(
  graph: Graph,
  nodes: readonly GroupNode[],
  derived: Derived<K>,
  ops: ReadonlyMap<string, Kernel>,
): Derived<K> {
  const facts = new Composition(graph, nodes, derived, ops).run()
  return { ...derived, kernel: { ...derived.kernel, facts } }
}

/** Facts of a whole graph: its inputs and weights by name, in counts of its dimensions. @param ops kernels of its ops, by name */
export function graphFacts(graph: Graph, ops: ReadonlyMap<string, Kernel>): Facts {
  const named = { ...graph.inputs, ...graph.weights }
  const bindings = Object.entries(named).map(([param, value]) => ({ param, value, shape: graph.values[value]?.shape ?? [] }))
  const tensors = bindings.map(({ param, value, shape }) => ({
    name: param,
    access: 'in' as const,
    dtype: graph.values[value]?.dtype ?? 'f32',
    // A composite extent has no name here: references to it are expressed by its dimensions.
    dims: shape.map((extent) => (extent.factor === 1 && extent.dims.length === 1 ? (extent.dims[0] ?? '') : printExtent(extent))),
    layout: rowMajor([]),
  }))
  // Dimensions of results are included, since inputs may depend on them: the size of an image follows from the number and size of its windows.
  const dims = [...new Set(graph.values.flatMap(({ shape }) => shape.flatMap((extent) => extent.dims)))]
  const kernel: Kernel = { ...emptyKernel, dims, tensors }
  const attrs = Object.fromEntries([
    ...dims.map((dim): [string, AttrValue] => [dim, { dim }]),
    ...graph.attrs.map((attr): [string, AttrValue] => [attr, { attr }]),
  ])
  const nodes = graph.nodes.flatMap((node) => (node.kind === 'view' ? [] : [node]))
  return new Composition(graph, nodes, { kernel, inputs: bindings, outputs: [], attrs }, ops).run()
}

class Composition {
  readonly #graph: Graph
  readonly #nodes: readonly GroupNode[]
  readonly #derived: Derived<Kernel | TemplateKernel>
  readonly #members: readonly Member[]
  readonly #inputs: Record<string, Domain> = {}
  readonly #dims: Record<string, ExtentFact> = {}
  readonly #attrs: Record<string, Facts['attrs'][string]> = {}
  readonly #counts: Counts

  constructor(
    graph: Graph,
    nodes: readonly GroupNode[],
    derived: Derived<Kernel | TemplateKernel>,
    ops: ReadonlyMap<string, Kernel>,
  ) {
    this.#graph = graph
    this.#nodes = nodes
    this.#derived = derived
    this.#members = nodes.flatMap((node) => {
      const kernel = node.kind === 'op' ? ops.get(node.op) : undefined
      return node.kind === 'op' && kernel !== undefined ? [{ node, kernel, facts: kernel.facts ?? noFacts }] : []
    })
    this.#counts = new Counts(graph, derived)
  }

  run(): Facts {
    for (const [dim, { factor, dims }] of this.#counts.extents) if (dims.length === 0) this.#dims[dim] = { equal: factor }
    for (const member of this.#members) {
      for (const [name, domain] of Object.entries(member.facts.inputs)) this.#addInput(member, name, domain)
      for (const [name, fact] of Object.entries(member.facts.dims)) this.#addDim(member, name, fact)
      for (const [name, { fills }] of Object.entries(member.facts.attrs)) this.#addAttr(member, name, fills)
    }
    for (const { equal, multipleOf } of Object.values(this.#dims))
      if (equal !== undefined && multipleOf !== undefined) this.#addMultiple(equal, multipleOf)
    this.#addLongest()
    this.#addFactors()
    this.#addParts()
    this.#addHeads()
    return { inputs: this.#inputs, dims: this.#dims, attrs: this.#attrs, results: {} }
  }

  #addInput(member: Member, name: string, domain: Domain): void {
    const param = this.#counts.input(member.node.inputs[name])
    // Skips int8 inputs: values over the whole int8 range would dominate other terms of a sum.
    if (param === undefined || this.#isInt8(param)) return
    const bound = (counts: readonly Count[] | undefined) =>
      (counts ?? []).flatMap((count) => {
        const here = this.#counts.of(member, count)
        return here === undefined ? [] : [here]
      })
    const { from, to, packed, divide, scales, ...rest } = domain
    const [least, most] = [bound(from), bound(to)]
    const where = packed === undefined ? undefined : this.#packed(member, packed)
    const moved: Domain = {
      ...rest,
      ...(least.length === 0 ? {} : { from: least }),
      ...(most.length === 0 ? {} : { to: most }),
      ...(where === undefined ? {} : { packed: where }),
      ...(divide === undefined ? {} : this.#scaling(member, divide, scales)),
    }
    const known = getOwn(this.#inputs, param)
    this.#inputs[param] = known === undefined ? moved : bothDomains(known, moved)
  }

  /** Divisor of drawn values. They may scale a matmul inside of the kernel, whose results grow with the root of its length. */
  #scaling(member: Member, divide: Count, scales: string | undefined): Pick<Domain, 'divide' | 'scales'> {
    const id = scales === undefined ? undefined : member.node.inputs[scales]
    const outside = this.#counts.input(id)
    if (outside !== undefined || id === undefined) return { divide, ...(outside === undefined ? {} : { scales: outside }) }
    const aliases = aliasesOf(this.#graph.nodes, id)
    const product = this.#nodes.find((node) => node.kind === 'matmul' && aliases.has(node.out))
    if (product?.kind !== 'matmul') return { divide }
    const { a, out } = product.subscripts
    const shape = this.#graph.values[product.a]?.shape ?? []
    const summed = a.flatMap((axis, i) => {
      const count = out.includes(axis) ? undefined : this.#counts.extent(shape[i])
      return count === undefined ? [] : [count]
    })
    return { divide: productOf(1, summed) }
  }

  #packed(member: Member, { role, batch, rows, seq }: Packed): Packed | undefined {
    const [here, where] = [batch, rows].map((count) => this.#counts.of(member, count))
    if (here === undefined) return undefined
    // Ops outside an author's packing read the same rows with padding: no sequence is longer than that.
    const padded = this.#graph.packing === undefined ? packingOf(this.#graph)?.seq : undefined
    const longest = seq === undefined ? this.#counts.extent(padded) : this.#counts.of(member, seq)
    const packing = { role, batch: here, rows: where ?? 0, ...(longest === undefined ? {} : { seq: longest }) }
    // Dimensions of the kernel that are one extent of the graph are one number here, since tables of rows refer to them.
    for (const count of [here, where, longest]) if (typeof count === 'string') this.#unify(count)
    return packing
  }

  /** Sizes padded tensors of a graph with packed rows, such as a mask over pairs, for the longest sequence. */
  #addLongest(): void {
    for (const { packed, to = [] } of Object.values(this.#inputs))
      for (const count of packed?.role === 'lengths' ? to : [])
        if (typeof count === 'string' && this.#counts.extents.has(count))
          this.#dims[count] = { ...this.#dims[count], atLeast: longestSequence }
  }

  #unify(dim: string): void {
    const extent = this.#counts.extents.get(dim)
    if (extent === undefined) return
    for (const [other, same] of this.#counts.extents)
      if (other !== dim && sameExtent(extent, same)) this.#dims[other] = { equal: dim }
  }

  #addDim(member: Member, name: string, fact: ExtentFact): void {
    const dim = this.#counts.of(member, name)
    const { equal, atLeast, atMost, multipleOf, ...rest } = fact
    if (dim !== undefined && multipleOf !== undefined) this.#addMultiple(dim, multipleOf)
    if (typeof dim !== 'string' || this.#dims[dim]?.equal !== undefined) return
    const moved = Object.fromEntries(
      Object.entries({ equal, atLeast, atMost }).flatMap(([key, count]) => {
        const here = count === undefined ? undefined : this.#counts.of(member, count)
        return here === undefined ? [] : [[key, here]]
      }),
    )
    for (const count of Object.values(moved)) for (const other of namesOf(count)) this.#unify(other)
    const made: ExtentFact = { ...rest, ...moved }
    const known = this.#dims[dim]
    const least = known?.atLeast !== undefined && made.atLeast !== undefined ? { atLeast: most(known.atLeast, made.atLeast) } : {}
    if (Object.keys(made).length > 0) this.#dims[dim] = { ...known, ...made, ...least }
  }

  /** If 4 divides `2*k`, then k is a multiple of 2. A product of several dimensions implies nothing about each. */
  #addMultiple(count: Count, of: number): void {
    const [first, ...others] = namesOf(count)
    const factor = first === undefined ? undefined : factorOf(count)
    if (first === undefined || factor === undefined || others.length > 0) return
    const multipleOf = leastCommonMultiple(of / commonDivisor(of, factor), this.#dims[first]?.multipleOf ?? 1)
    if (multipleOf > 1) this.#dims[first] = { ...this.#dims[first], multipleOf }
  }

  #addAttr({ node, kernel }: Member, name: string, fills: string): void {
    const given = getOwn(node.attrs, name) ?? kernel.attrs.find((attr) => attr.name === name)?.default
    const same = Object.entries(this.#derived.attrs).filter(([, value]) => sameAttr(value, given))
    const [attr] = same.length === 1 ? (same[0] ?? []) : (same.find(([key]) => key === name) ?? [])
    const output = this.#reached(node.outputs[fills])
    if (attr !== undefined && output !== undefined) this.#attrs[attr] = { fills: output }
  }

  /** The kernel's int8 output that a value reaches, through any members. */
  #reached(id: ValueId | undefined): string | undefined {
    const made = new Set(id === undefined ? [] : aliasesOf(this.#graph.nodes, id))
    for (const { node } of this.#members) {
      if (!Object.values(node.inputs).some((input) => made.has(input))) continue
      for (const output of outputsOf(node)) for (const alias of aliasesOf(this.#graph.nodes, output)) made.add(alias)
    }
    return this.#derived.outputs.find(({ param, value }) => made.has(value) && this.#isInt8(param))?.param
  }

  #isInt8(param: string): boolean {
    return this.#derived.kernel.tensors.some(({ name, dtype }) => name === param && dtype === 'i8')
  }

  /** Limits rows of attention to the length that its loops support. */
  #addHeads(): void {
    const { kernel } = this.#derived
    if (!isTemplate(kernel) || kernel.kind === 'matmul') return
    for (const expr of [kernel.headDim, kernel.valueDim])
      if (expr.kind === 'dim') this.#dims[expr.name] = { ...this.#dims[expr.name], upTo: longestHead }
  }

  /** Rows or columns of a matmul of which an epilogue has all parts: their number is the product of the parts. */
  #addParts(): void {
    const { kernel } = this.#derived
    if (!isTemplate(kernel) || kernel.kind !== 'matmul') return
    for (const axis of [kernel.m, kernel.n]) {
      const { factor, dims } = this.#counts.extents.get(axis) ?? { factor: 1, dims: [] }
      const parts = dims.flatMap(
        (dim) => [...this.#counts.extents].find(([, extent]) => sameExtent(extent, { factor: 1, dims: [dim] }))?.[0] ?? [],
      )
      if (dims.length > 1 && parts.length === dims.length)
        this.#dims[axis] = { ...this.#dims[axis], equal: productOf(factor, parts) }
    }
  }

  /** Gives int8 factors the whole int8 range where sums stay integers; float results would be large. */
  #addFactors(): void {
    const { kernel } = this.#derived
    if (!isTemplate(kernel) || kernel.kind !== 'matmul' || !sumsIntegers(kernel)) return
    if (kernel.tensors.some(({ access, dtype }) => access === 'out' && dtype !== 'i32')) return
    for (const { tensor } of factorsOf(kernel)) this.#inputs[tensor] = { from: [-127], to: [127] }
  }
}

/** The larger of two counts. */
const most = (a: Count, b: Count): Count => (JSON.stringify(a) === JSON.stringify(b) ? a : ['maximum', a, b])
