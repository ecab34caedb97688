/**
 * Removes padding from a graph: values with one row per token of the padded batch (extent `b*s`) get one row per actual token (extent `t`). Views
 * that split such rows into sequences and positions become `unpackRows`, views that join them again `packRows`. Other nodes stay unchanged, and have
 * to treat each row by itself. Runs before a plan groups nodes.
 */
import { usageError } from '../../errors.js'
import {
  type Graph,
  type GraphNode,
  type GraphValue,
  inputsOf,
  type NodeOf,
  outputsOf,
  type PackedRows,
  type ValueId,
} from '../../ir/graph.js'
import { type Kernel, printType } from '../../ir/kernel.js'
import { freshName } from '../../ir/names.js'
import { type Extent, multiplyExtents, parseExtent, printShape, type Shape, sameExtent } from '../../ir/shape.js'
import { packName, unpackName } from '../../lang/node_names.js'
import { inputNames, isNodeOf, opNode } from '../../lang/op_node.js'
import type { Packing } from '../../lang/plan.js'
import { packRows, unpackRows } from '../../std/index.js'
import { mapInputs, pushValue, reshape, valueAt } from './edit.js'
import { rowFault } from './row_wise.js'

/** Additional inputs of a packed graph, under the names in the library's ops. */
const given = { ...inputNames(unpackRows), ...inputNames(packRows) }
type Placing = Exclude<keyof PackedRows, 'batch' | 'seq' | 'tokens'>

/**
 * Removes the padding of a graph. @param ops kernels of its ops
 * @throws usage `plan.packed` naming the view that cannot be expressed over packed rows, or the node that does not treat each row by itself
 */
export function packGraph(graph: Graph, packing: Packing, ops: ReadonlyMap<string, Kernel>): Graph {
  checkRows(graph, packing, ops)
  return new Packer(graph, packing).run()
}

/** Refuses nodes whose results would change where rows move. */
function checkRows(graph: Graph, { batch, seq }: Packing, ops: ReadonlyMap<string, Kernel>): void {
  const split = [batch, seq].map(parseExtent)
  const rows = multiplyExtents(split)
  for (const node of graph.nodes) {
    const fault = rowFault(graph, node, rows, ops)
    if (fault === undefined) continue
    throw usageError(
      'plan.packed',
      `${graph.name}: ${node.name} ${fault}, and rows without padding are others than "${printShape([rows])}"`,
      {
        hint: `view its inputs as "${printShape(split)} ..." before it, where padding is restored, or leave packed out of the plan`,
        about: { nodes: [node.name] },
      },
    )
  }
}

/**
 * Layout of the rows of a graph without padding, as a plan or the graph's author packed it. An author's nodes that pack and restore padding
 * between the same extents use the same rows if the graph takes each part of the packing as one input: the facts of those ops promise this.
 */
export function packingOf(graph: Graph): PackedRows | undefined {
  return graph.packing ?? ownPacking(graph)
}

/** True if a node removes the padding of the graph's own sequences, whose row positions are inputs of the graph. */
export function isPackStep(graph: Graph, node: GraphNode): boolean {
  if (!isNodeOf(packRows, node)) return false
  const packing = packingOf(graph)
  if (packing?.sequences === undefined) return false
  return node.inputs.sequences === packing.sequences && node.inputs.positions === packing.positions
}

function ownPacking({ nodes, inputs, values }: Graph): PackedRows | undefined {
  const given = new Set(Object.values(inputs))
  const packs = nodes.filter((node) => isNodeOf(packRows, node))
  const unpacks = nodes.filter((node) => isNodeOf(unpackRows, node))
  const one = (ids: readonly ValueId[]): ValueId | undefined => {
    const [id] = new Set(ids)
    return id !== undefined && given.has(id) && ids.every((other) => other === id) ? id : undefined
  }
  const [starts, lengths] = [one(unpacks.map((node) => node.inputs.starts)), one(unpacks.map((node) => node.inputs.lengths))]
  const sequences = one(packs.map((node) => node.inputs.sequences))
  const positions = one(packs.map((node) => node.inputs.positions))
  const padded = [...packs.map((node) => node.inputs.x), ...unpacks.map((node) => node.outputs.y)]
  const rows = [...packs.map((node) => node.outputs.y), ...unpacks.map((node) => node.inputs.x)]
  const [first, row] = [padded[0], rows[0]]
  if (first === undefined || row === undefined) return undefined
  const [batch, seq] = valueAt(values, first).shape
  const [tokens] = valueAt(values, row).shape
  if (batch === undefined || seq === undefined || tokens === undefined) return undefined
  const isAlike = (id: ValueId, wanted: Shape): boolean =>
    wanted.every((extent, at) => {
      const own = valueAt(values, id).shape[at]
      return own !== undefined && sameExtent(own, extent)
    })
  const isOne = padded.every((id) => isAlike(id, [batch, seq])) && rows.every((id) => isAlike(id, [tokens]))
  const all = { starts, lengths, sequences, positions }
  return isOne && Object.values(all).every((id) => id !== undefined) ? { batch, seq, tokens, ...all } : undefined
}

class Packer {
  readonly #graph: Graph
  readonly #batch: Extent
  readonly #seq: Extent
  readonly #tokens: Extent
  readonly #rows: Extent
  readonly #values: GraphValue[]
  readonly #nodes: GraphNode[] = []
  readonly #inputs: Record<string, ValueId>
  readonly #packing: Packing
  readonly #names: Set<string>
  readonly #placing: { -readonly [K in Placing]?: ValueId } = {}
  /** Results of views that became padding steps, and the values that replace them. */
  readonly #replaced = new Map<ValueId, ValueId>()

  constructor(graph: Graph, packing: Packing) {
    this.#graph = graph
    this.#batch = parseExtent(packing.batch)
    this.#seq = parseExtent(packing.seq)
    this.#tokens = parseExtent(packing.tokens)
    this.#rows = multiplyExtents([this.#batch, this.#seq])
    this.#values = graph.values.map((value) => ({ ...value, shape: value.shape.map((extent) => this.#packed(extent)) }))
    this.#inputs = { ...graph.inputs }
    this.#packing = packing
    this.#names = new Set(graph.nodes.map(({ name }) => name))
  }

  run(): Graph {
    for (const node of this.#graph.nodes) {
      const moved = mapInputs(node, (id) => this.#current(id))
      if (node.kind === 'view') this.#view(node, moved)
      else this.#nodes.push(moved)
    }
    const outputs = Object.fromEntries(Object.entries(this.#graph.outputs).map(([name, id]) => [name, this.#current(id)]))
    const packing = { batch: this.#batch, seq: this.#seq, tokens: this.#tokens, ...this.#placing }
    return { ...this.#graph, values: this.#values, nodes: this.#nodes, inputs: this.#inputs, outputs, packing }
  }

  #view(node: NodeOf<'view'>, moved: GraphNode): void {
    const from = valueAt(this.#graph.values, node.input).shape
    const to = valueAt(this.#graph.values, node.out).shape
    const [joinedFrom, joinedTo] = [this.#isJoined(from), this.#isJoined(to)]
    if (joinedFrom === joinedTo) this.#nodes.push(moved)
    else if (joinedFrom && this.#isSplit(to)) this.#unpack(node, to)
    else if (joinedTo && this.#isSplit(from)) this.#pack(node, to)
    else {
      throw usageError(
        'plan.packed',
        `${this.#graph.name}: the view from "${printShape(from)}" to "${printShape(to)}" cannot be expressed over packed rows`,
        { hint: `split "${printShape([this.#rows])}" into "${printShape([this.#batch, this.#seq])}" in a view of its own` },
      )
    }
  }

  #unpack(node: NodeOf<'view'>, to: Shape): void {
    const name = this.#named(unpackName, [this.#reader(node.out), this.#maker(node.input)], node)
    const width = multiplyExtents(to.slice(2))
    const x = this.#reshape(this.#current(node.input), [this.#tokens, width], `${name}.x`)
    const y = pushValue(this.#values, { ...valueAt(this.#values, x), shape: [this.#batch, this.#seq, width] })
    const inputs = { x, starts: this.#place(given.starts, this.#batch), lengths: this.#lengths() }
    this.#nodes.push(opNode(unpackRows, name, { types: this.#types(y), inputs, outputs: { y }, attrs: {} }))
    this.#replaced.set(node.out, this.#reshape(y, to, `${name}.y`))
  }

  #pack(node: NodeOf<'view'>, to: Shape): void {
    const name = this.#named(packName, [this.#maker(node.input), this.#reader(node.out)], node)
    const width = multiplyExtents(to.slice(1))
    const x = this.#reshape(this.#current(node.input), [this.#batch, this.#seq, width], `${name}.x`)
    const y = pushValue(this.#values, { ...valueAt(this.#values, x), shape: [this.#tokens, width] })
    const [sequences, positions] = [this.#place(given.sequences, this.#tokens), this.#place(given.positions, this.#tokens)]
    const inputs = { x, sequences, positions }
    this.#nodes.push(opNode(packRows, name, { types: this.#types(y), inputs, outputs: { y }, attrs: {} }))
    this.#replaced.set(node.out, this.#reshape(y, [this.#tokens, ...to.slice(1)], `${name}.y`))
  }

  /**
   * Name of a step: after the first of some nodes whose step name is free. A matmul may read both operands through views, and then names only one
   * step.
   */
  #named(step: (node: string) => string, after: readonly (string | undefined)[], { name: view }: NodeOf<'view'>): string {
    const wanted = [...after.flatMap((name) => name ?? []), view].map(step)
    const name = wanted.find((each) => !this.#names.has(each)) ?? freshName(step(view), new Set(this.#names))
    this.#names.add(name)
    return name
  }

  /** The node that reads a value, directly or through views. */
  #reader(id: ValueId): string | undefined {
    const reader = this.#graph.nodes.find((other) => inputsOf(other).includes(id))
    return reader?.kind === 'view' ? this.#reader(reader.out) : reader?.name
  }

  /** The node that computes a value, directly or through views. */
  #maker(id: ValueId): string | undefined {
    const maker = this.#graph.nodes.find((other) => outputsOf(other).includes(id))
    return maker?.kind === 'view' ? this.#maker(maker.input) : maker?.name
  }

  #types = (y: ValueId) => ({ T: valueAt(this.#values, y).dtype })

  /** An input with positions of rows, added when it is first needed. */
  #place(name: Placing, extent: Extent): ValueId {
    const made = this.#placing[name] ?? this.#declare(name, extent)
    this.#placing[name] = made
    return made
  }

  /** The lengths of sequences: the graph's own input where the plan names it. */
  #lengths(): ValueId {
    const { lengths: name } = this.#packing
    const own = name === undefined ? undefined : this.#graph.inputs[name]
    if (own === undefined) return this.#place(given.lengths, this.#batch)
    const { dtype, shape } = valueAt(this.#values, own)
    if (dtype !== 'i32' || printShape(shape) !== printShape([this.#batch])) {
      const found = `${printType(dtype)} "${printShape(shape)}"`
      throw usageError(
        'plan.packed',
        `${this.#graph.name}: expected lengths i32 "${printShape([this.#batch])}", got ${name}, ${found}`,
        {
          hint: 'name the input that holds the length of each sequence',
        },
      )
    }
    this.#placing.lengths = own
    return own
  }

  #declare(name: string, extent: Extent): ValueId {
    if (this.#inputs[name] !== undefined) {
      throw usageError('plan.packed', `${this.#graph.name}: packed rows need an input ${name}, and it has one of its own`, {
        hint:
          name === given.lengths
            ? `say that it holds the length of each sequence, packed: { ..., lengths: '${name}' }, or rename it`
            : 'rename it',
      })
    }
    const made = pushValue(this.#values, { dtype: 'i32', shape: [extent], layout: 'row' })
    this.#inputs[name] = made
    return made
  }

  #reshape(id: ValueId, shape: Shape, name: string): ValueId {
    return reshape(this.#values, this.#nodes, id, shape, name)
  }

  #current(id: ValueId): ValueId {
    return this.#replaced.get(id) ?? id
  }

  #packed(extent: Extent): Extent {
    return sameExtent(extent, this.#rows) ? this.#tokens : extent
  }

  #isJoined([first]: Shape): boolean {
    return first !== undefined && sameExtent(first, this.#rows)
  }

  #isSplit([first, second]: Shape): boolean {
    return first !== undefined && second !== undefined && sameExtent(first, this.#batch) && sameExtent(second, this.#seq)
  }
}
