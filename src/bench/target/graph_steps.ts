/**
 * A graph as its own program, for timing. All its data is in device memory already, so that a replay copies nothing, and may be there in
 * several copies, so that no replay hits data cached by the previous one. Values that a kernel changes in place stay inputs.
 */
import type { KernelEntry, Manifest } from '../../emit/manifest/manifest.js'
import { type DType, dtypeInfo } from '../../ir/dtype.js'
import type { Graph, NodeOf, ValueId } from '../../ir/graph.js'
import { graphAt } from '../../ir/graph_rows.js'
import { evaluateExtent } from '../../ir/shape.js'
import type { GraphApplication } from '../../runtime/application.js'
import { type Binding, bindKernel, type ValueInfo, valueInfo } from '../../runtime/bind.js'
import { findLayout, type Layouts, layoutSize } from '../../runtime/layouts.js'
import type { WeightTensor } from '../../runtime/session.js'
import { weightSource } from '../../runtime/weight_tensors.js'
import type { Sequences } from '../../verify/sizes.js'
import { isUnknown, makeTensor, type Reader } from './tensors.js'

export interface TargetSizes {
  readonly dims: Readonly<Record<string, number>>
  readonly dtype: DType
}

/** A graph wired as a program, with its data. */
export interface TargetProgram {
  readonly application: GraphApplication
  /** Values that a kernel changes in place. */
  readonly inputs: Readonly<Record<string, WeightTensor>>
  /** Everything else, by the names of the application's weights. */
  readonly tensors: Readonly<Record<string, WeightTensor>>
  /** Output that holds an updated input after the graph, by the input; none if the graph does not return it. */
  readonly next: Readonly<Record<string, string>>
  /** Bytes of inputs, weights and outputs, each counted once. */
  readonly bytes: number
  /** Integer tensors filled with zeros, because their range is unknown. */
  readonly zeros: readonly string[]
}

/** Storage types of a graph's type parameters: all are the timed type. */
export const typesOf = ({ values }: Graph, dtype: DType): Readonly<Record<string, DType>> =>
  Object.fromEntries(values.flatMap((value) => (typeof value.dtype === 'string' ? [] : [[value.dtype.param, dtype]])))

/** @throws usage `graph.dim`, `bind.*` */
export function targetProgram(planned: Graph, sizes: TargetSizes, manifest: Manifest, layouts: Layouts): TargetProgram {
  const graph = graphAt(planned, sizes.dims)
  const attrs = Object.fromEntries(graph.attrs.map((name) => [name, attrOf(graph, name, manifest)]))
  const binding: Binding = { dims: sizes.dims, types: typesOf(graph, sizes.dtype), attrs }
  const infoOf = (id: ValueId): ValueInfo => valueInfo(graph, id, binding)
  const elementsOf = ({ shape, layout }: ValueInfo): number => layoutSize(findLayout(layouts, layout, shape.length), shape)
  const bound = graph.nodes.flatMap((node) => {
    if (node.kind !== 'op') return []
    const { entry } = bindKernel(graph, node, binding, manifest)
    return [{ node, entry, dims: dimsOf(node, entry, infoOf) }]
  })
  const changed = new Set(
    bound.flatMap(({ node, entry }) =>
      entry.buffers.flatMap(({ updates }) => (updates === undefined ? [] : [sourceOf(graph, node.inputs[updates])])),
    ),
  )
  const sequences = sequencesOf(graph, sizes.dims)
  const zeros: string[] = []
  const make = (name: string, id: ValueId): WeightTensor => {
    const info = infoOf(id)
    const reader = readerOf(graph, id, bound)
    if (isUnknown(info, reader)) zeros.push(name)
    return makeTensor(`${graph.name} ${name}`, info, elementsOf(info), reader, sequences)
  }
  const given = Object.entries(graph.inputs)
  const inputs = Object.fromEntries(given.flatMap(([name, id]) => (changed.has(id) ? [[name, id]] : [])))
  const weights = {
    ...graph.weights,
    ...Object.fromEntries(given.flatMap(([name, id]) => (changed.has(id) ? [] : [[`input ${name}`, id]]))),
  }
  const alone: Graph = { ...graph, inputs, weights, stacked: undefined, steps: undefined }
  const all = (ids: Readonly<Record<string, ValueId>>) =>
    Object.fromEntries(Object.entries(ids).map(([name, id]) => [name, make(name, id)]))
  const [read, tensors] = [all(inputs), all(weights)]
  const size = (made: Readonly<Record<string, WeightTensor>>) =>
    Object.values(made).reduce((sum, { data }) => sum + data.byteLength, 0)
  const next = nextOf(graph, inputs, bound)
  const returned = Object.values(graph.outputs).reduce(
    (sum, id) => sum + elementsOf(infoOf(id)) * dtypeInfo[infoOf(id).dtype].bytes,
    0,
  )
  const names = (ids: Readonly<Record<string, unknown>>) => Object.fromEntries(Object.keys(ids).map((name) => [name, name]))
  const application = {
    label: graph.name,
    graph: alone,
    inputs: names(inputs),
    weights: names(weights),
    outputs: outputNames(graph),
    attrs,
  }
  return { application, inputs: read, tensors, next, bytes: size(read) + size(tensors) + returned, zeros }
}

const outputName = (name: string): string => `output ${name}`

const outputNames = ({ outputs }: Graph): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.keys(outputs).map((name) => [name, outputName(name)]))

/** The last value of each updated input that the graph returns. */
function nextOf(graph: Graph, inputs: Readonly<Record<string, ValueId>>, bound: readonly Bound[]): Record<string, string> {
  const next: Record<string, string> = {}
  for (const [name, id] of Object.entries(inputs)) {
    const versions = new Set([id])
    let last: ValueId | undefined
    for (const { node, entry } of bound) {
      for (const { name: buffer, updates } of entry.buffers) {
        const [from, to] = updates === undefined ? [] : [node.inputs[updates], node.outputs[buffer]]
        if (from === undefined || to === undefined || !versions.has(sourceOf(graph, from))) continue
        versions.add(to)
        last = to
      }
    }
    const after = Object.entries(graph.outputs).find(([, value]) => sourceOf(graph, value) === last)
    if (after !== undefined) next[name] = outputName(after[0])
  }
  return next
}

/** Source names of an application's weights. */
export const weightNames = (application: GraphApplication): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.keys(application.graph.weights).map((name) => [name, weightSource(application, name).name]))

/** Default of an attribute in the op that reads it; 1 without one. */
function attrOf({ nodes }: Graph, name: string, { kernels }: Manifest): number {
  for (const node of nodes) {
    if (node.kind !== 'op') continue
    const [param] =
      Object.entries(node.attrs).find(([, value]) => typeof value === 'object' && 'attr' in value && value.attr === name) ?? []
    const found = kernels.find(({ op }) => op === node.op)?.attrs.find((attr) => attr.name === param)
    if (found !== undefined) return found.default
  }
  return 1
}

/** Lengths of sequences; packed ones are full. */
function sequencesOf({ packing }: Graph, dims: Readonly<Record<string, number>>): Sequences {
  if (packing === undefined) return 'ragged'
  return { rows: Math.max(1, Math.floor(evaluateExtent(packing.tokens, dims) / evaluateExtent(packing.batch, dims))) }
}

interface Bound {
  readonly node: NodeOf<'op'>
  readonly entry: KernelEntry
  readonly dims: Readonly<Record<string, number>>
}

function dimsOf(node: NodeOf<'op'>, entry: KernelEntry, infoOf: (id: ValueId) => ValueInfo): Record<string, number> {
  const dims: Record<string, number> = {}
  for (const { name, dims: names } of entry.buffers) {
    const id = node.inputs[name] ?? node.outputs[name]
    const shape = id === undefined ? [] : infoOf(id).shape
    names.forEach((dim, i) => {
      dims[dim] = shape[i] ?? 1
    })
  }
  return dims
}

/** Value of which the given one is a view. */
const sourceOf = (graph: Graph, id: ValueId = -1): ValueId => {
  const view = graph.nodes.find((node) => node.kind === 'view' && node.out === id)
  return view?.kind === 'view' ? sourceOf(graph, view.input) : id
}

/** A kernel that reads a value; preferably one with facts about its integers. */
function readerOf(graph: Graph, id: ValueId, bound: readonly Bound[]): Reader | undefined {
  const readers = bound.flatMap(({ node, entry, dims }): Reader[] =>
    entry.buffers.flatMap((buffer) =>
      buffer.access === 'in' && sourceOf(graph, node.inputs[buffer.name]) === id ? [{ entry, buffer, dims }] : [],
    ),
  )
  return readers.find(({ entry, buffer }) => entry.facts?.inputs[buffer.name] !== undefined) ?? readers[0]
}
