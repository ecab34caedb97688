/**
 * Flattens a sequence of graphs into steps over storages: views become aliases, ops become bound kernels, einsum products
 * become strided matmuls. Pure: nothing here touches a device, so the result can be inspected and tested by itself.
 */

import type { Manifest } from '../emit/manifest.js'
import { usageError } from '../errors.js'
import { type DType, dtypeInfo } from '../ir/dtype.js'
import { type Graph, type NodeOf, outputsOf, type ValueId } from '../ir/graph.js'
import type { GraphApplication } from './application.js'
import { type Binding, bindKernel, type ValueInfo, valueInfo } from './bind.js'
import { findLayout, type Layouts, layoutSize, layoutStrides } from './layouts.js'
import { lowerMatmul, type StridedMatmul, type StridedOperand } from './matmul.js'
import { weightSource } from './weight_tensors.js'

export interface FlattenConfig {
  readonly applications: readonly GraphApplication[]
  /** Names of the values the caller supplies at each run. */
  readonly inputs: readonly string[]
  /** Names of the values each run returns. */
  readonly outputs: readonly string[]
  readonly dims: Readonly<Record<string, number>>
  readonly types: Readonly<Record<string, DType>>
  readonly weights: ReadonlyMap<string, { readonly dtype: DType; readonly shape: readonly number[]; readonly layout?: string }>
  readonly layouts: Layouts
  readonly manifest: Manifest
}

/** Index into `FlatProgram.storages`. */
export type StorageId = number

/** Memory for one value: a weight, or a piece of the arena while the value is alive. */
export interface Storage {
  readonly bytes: number
  readonly weight: string | undefined
  /** Steps during which it holds its value, both ends included. */
  first: number
  last: number
}

export type FlatStep =
  | {
      readonly kind: 'kernel'
      readonly label: string
      readonly key: string
      readonly buffers: readonly StorageId[]
      readonly dims: readonly number[]
      readonly attrs: readonly number[]
    }
  | {
      readonly kind: 'matmul'
      readonly label: string
      readonly a: StorageId
      readonly b: StorageId
      readonly out: StorageId
      readonly dtypes: readonly [DType, DType, DType]
      readonly matmul: StridedMatmul
    }

export interface ProgramValue {
  readonly info: ValueInfo
  readonly storage: StorageId
}

export interface FlatProgram {
  readonly storages: readonly Storage[]
  readonly steps: readonly FlatStep[]
  readonly inputs: Readonly<Record<string, ProgramValue>>
  readonly outputs: Readonly<Record<string, ProgramValue>>
}

/** @throws usage `program.*` for wiring that does not fit, and what binding and matmul lowering throw */
export function flatten(config: FlattenConfig): FlatProgram {
  const state: State = { config, storages: [], steps: [], named: new Map(), inputs: {} }
  for (const application of config.applications) flattenApplication(state, application)

  // Inputs are copied in before the first step and keep their memory, so that the steps alone can be replayed.
  const last = Math.max(0, state.steps.length - 1)
  for (const { storage } of Object.values(state.inputs)) {
    extend(state, storage, 0)
    extend(state, storage, last)
  }
  const outputs = Object.fromEntries(
    config.outputs.map((name) => {
      const value = state.named.get(name)
      if (value === undefined) {
        throw usageError('program.value', `output ${name} is not computed`, { hint: `computed: ${list(state.named.keys())}` })
      }
      extend(state, value.storage, last)
      return [name, value]
    }),
  )
  return { storages: state.storages, steps: state.steps, inputs: state.inputs, outputs }
}

/** What grows while the applications are walked in order. */
interface State {
  readonly config: FlattenConfig
  readonly storages: Storage[]
  readonly steps: FlatStep[]
  /** Program values that exist so far. */
  readonly named: Map<string, ProgramValue>
  readonly inputs: Record<string, ProgramValue>
}

function flattenApplication(state: State, application: GraphApplication): void {
  const { graph, label } = application
  const binding: Binding = { dims: state.config.dims, types: state.config.types, attrs: application.attrs }
  const info = (id: ValueId) => valueInfo(graph, id, binding)
  const values = new Map<ValueId, StorageId>()
  for (const [name, id] of Object.entries(graph.inputs)) values.set(id, inputStorage(state, application, name, info(id)))
  for (const [name, id] of Object.entries(graph.weights)) values.set(id, weightStorage(state, application, name, info(id)))
  for (const node of graph.nodes) {
    if (node.kind === 'view') values.set(node.out, storageOf(values, node.input))
    else {
      for (const id of outputsOf(node)) values.set(id, allocate(state, info(id)))
      const use = (id: ValueId): StorageId => extend(state, storageOf(values, id), state.steps.length)
      state.steps.push(lowerStep(state.config, `${label}/${node.name}`, graph, node, binding, use))
    }
  }
  for (const [name, id] of Object.entries(graph.outputs)) {
    const wire = wired(label, 'output', name, application.outputs)
    if (state.named.has(wire))
      throw usageError('program.value', `${label}: output ${name} is wired to ${wire}, which already has a value`)
    state.named.set(wire, { info: info(id), storage: storageOf(values, id) })
  }
}

function lowerStep(
  config: FlattenConfig,
  label: string,
  graph: Graph,
  node: NodeOf<'op'> | NodeOf<'matmul'>,
  binding: Binding,
  use: (id: ValueId) => StorageId,
): FlatStep {
  if (node.kind === 'op') {
    const { entry, values, dims, attrs } = bindKernel(graph, node, binding, config.manifest)
    return { kind: 'kernel', label, key: entry.key, buffers: values.map(use), dims, attrs }
  }
  const dtype = (id: ValueId): DType => valueInfo(graph, id, binding).dtype
  const operand = (id: ValueId, axes: readonly string[]): StridedOperand => {
    const { shape, layout } = valueInfo(graph, id, binding)
    return { axes, extents: shape, strides: layoutStrides(findLayout(config.layouts, layout, shape.length), shape) }
  }
  const { a, b, out, subscripts } = node
  const dtypes = [dtype(a), dtype(b), dtype(out)] as const
  const matmul = lowerMatmul(label, {
    a: operand(a, subscripts.a),
    b: operand(b, subscripts.b),
    out: operand(out, subscripts.out),
  })
  if (dtypes[0] === 'i8') expectSummable(label, matmul.extents[3])
  return { kind: 'matmul', label, a: use(a), b: use(b), out: use(out), dtypes, matmul }
}

/** The most products of int8 whose sum int32 holds, for factors within [-127, 127]. */
const mostInt8Terms = Math.floor((2 ** 31 - 1) / 127 ** 2)

function expectSummable(label: string, k: number): void {
  if (k <= mostInt8Terms) return
  throw usageError('matmul.terms', `${label}: sums of ${k} products of int8 may exceed int32`, {
    hint: `at most ${mostInt8Terms} can be added; quantise another operand, or keep this matmul in floats`,
  })
}

/** The storage of the program value a graph input is wired to; the first use of a program input creates it. */
function inputStorage(state: State, { label, inputs }: GraphApplication, name: string, info: ValueInfo): StorageId {
  const wire = wired(label, 'input', name, inputs)
  const known = state.named.get(wire)
  if (known !== undefined) {
    expectSame(`${label}: input ${name} (${wire})`, info, known.info)
    return known.storage
  }
  if (!state.config.inputs.includes(wire)) {
    throw usageError('program.value', `${label}: input ${name} is wired to ${wire}, which nothing computes before`, {
      hint: `program inputs: ${list(state.config.inputs)}; computed: ${list(state.named.keys())}`,
    })
  }
  const value = { info, storage: allocate(state, info) }
  state.named.set(wire, value)
  state.inputs[wire] = value
  return value.storage
}

function weightStorage(state: State, application: GraphApplication, name: string, info: ValueInfo): StorageId {
  const { label } = application
  const { name: tensor } = weightSource(application, name)
  const weight = state.config.weights.get(tensor)
  if (weight === undefined) {
    throw usageError('program.weight', `${label}: weight ${name} is wired to ${tensor}, which does not exist`)
  }
  expectSame(`${label}: weight ${name} (${tensor})`, info, { ...weight, layout: weight.layout ?? 'row' })
  return allocate(state, info, tensor)
}

function allocate(state: State, info: ValueInfo, weight?: string): StorageId {
  const elements = layoutSize(findLayout(state.config.layouts, info.layout, info.shape.length), info.shape)
  const step = state.steps.length
  state.storages.push({ bytes: elements * dtypeInfo[info.dtype].bytes, weight, first: step, last: step })
  return state.storages.length - 1
}

function storageOf(values: ReadonlyMap<ValueId, StorageId>, id: ValueId): StorageId {
  const storage = values.get(id)
  if (storage === undefined) throw new Error(`internal: graph value ${id} is used before it is computed`)
  return storage
}

/** Lengthens a storage's life to include a step. */
function extend(state: State, id: StorageId, step: number): StorageId {
  const storage = state.storages[id]
  if (storage === undefined) throw new Error(`internal: no storage ${id}`)
  storage.first = Math.min(storage.first, step)
  storage.last = Math.max(storage.last, step)
  return id
}

const list = (names: Iterable<string>): string => [...names].join(', ') || 'none'

function wired(label: string, what: string, name: string, wires: Readonly<Record<string, string>>): string {
  const wire = wires[name]
  if (wire === undefined) {
    throw usageError('program.wire', `${label}: ${what} ${name} is not wired`, {
      hint: `wired: ${list(Object.keys(wires))}`,
    })
  }
  return wire
}

const describe = ({ dtype, shape, layout }: ValueInfo): string => `${dtype} [${shape.join(', ')}] in layout ${layout}`

function expectSame(what: string, expected: ValueInfo, found: ValueInfo): void {
  if (describe(expected) !== describe(found)) {
    throw usageError('program.shape', `${what}: expected ${describe(expected)}, found ${describe(found)}`)
  }
}
