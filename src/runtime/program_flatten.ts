/**
 * Flattens a sequence of graphs into steps over storages: views become aliases, ops become bound kernels, einsums become strided matmuls, states get
 * their next values. Pure: no device is involved, so the result can be inspected and tested separately.
 */
import { usageError } from '../errors.js'
import type { DType } from '../ir/dtype.js'
import type { ValueId } from '../ir/graph.js'
import { graphAt } from '../ir/graph_rows.js'
import type { GraphApplication } from './application.js'
import { type BoundKernel, bindingOf, bindKernel, type ValueInfo, valueInfo } from './bind.js'
import { ProgramMemory, type Storage, type StorageId, type StoredValue } from './program_memory.js'
import { carryStates, describeValue, initialStates, type ProgramStates, type ProgramValue, valueBytes } from './program_states.js'
import { type FlatStep, kernelStep, matmulSteps, type StepContext } from './program_steps.js'
import { weightSource } from './weight_tensors.js'

export interface FlattenConfig extends StepContext {
  readonly applications: readonly GraphApplication[]
  /** Names of the values the caller supplies at each run. */
  readonly inputs: readonly string[]
  /** Names of the values each run returns. */
  readonly outputs: readonly string[]
  /** Values that stay on the device from run to run, by name. */
  readonly states?: ProgramStates
  readonly dims: Readonly<Record<string, number>>
  readonly types: Readonly<Record<string, DType>>
  readonly weights: ReadonlyMap<string, { readonly dtype: DType; readonly shape: readonly number[]; readonly layout?: string }>
}

export interface FlatProgram {
  readonly storages: readonly Storage[]
  readonly steps: readonly FlatStep[]
  readonly inputs: Readonly<Record<string, ProgramValue>>
  readonly outputs: Readonly<Record<string, ProgramValue>>
}

/** @throws usage `program.*` for wiring that does not fit, and errors of binding and matmul lowering */
export function flatten(config: FlattenConfig): FlatProgram {
  const memory = new ProgramMemory()
  const { states = {}, layouts } = config
  const both = config.inputs.find((wire) => Object.hasOwn(states, wire))
  if (both !== undefined) throw usageError('program.state', `${both} is an input and a state of the program`)
  const state: State = { config, memory, steps: [], named: initialStates(states, memory, layouts), inputs: {} }
  for (const application of config.applications) flattenApplication(state, application)
  for (const name of config.outputs) {
    if (!state.named.has(name)) {
      throw usageError('program.value', `output ${name} is not computed`, { hint: `computed: ${list(state.named.keys())}` })
    }
  }
  const { inputs, steps, named: values } = state
  carryStates({ states, memory, values, inputs, outputs: config.outputs, layouts, steps })

  // Inputs are copied in before the first step and keep their memory, so that the steps alone can be replayed.
  const last = Math.max(0, steps.length - 1)
  for (const { storage } of Object.values(inputs)) {
    memory.extend(storage, 0)
    memory.extend(storage, last)
  }
  const outputs = Object.fromEntries(
    config.outputs.flatMap((name) => {
      const value = values.get(name)
      if (value === undefined) return []
      memory.read(value, last, `output ${name}`)
      return [[name, value]]
    }),
  )
  return { storages: memory.storages, steps, inputs, outputs }
}

/** Mutable state of flattening. */
interface State {
  readonly config: FlattenConfig
  readonly memory: ProgramMemory
  readonly steps: FlatStep[]
  /** Program values that exist so far. */
  readonly named: Map<string, ProgramValue>
  readonly inputs: Record<string, ProgramValue>
}

function flattenApplication(state: State, application: GraphApplication): void {
  const { label } = application
  const binding = bindingOf(application, state.config)
  const graph = graphAt(application.graph, binding.dims)
  const info = (id: ValueId) => valueInfo(graph, id, binding)
  const values = new Map<ValueId, StoredValue>()
  for (const [name, id] of Object.entries(graph.inputs)) values.set(id, inputValue(state, application, name, info(id)))
  for (const [name, id] of Object.entries(graph.weights)) values.set(id, weightValue(state, application, name, info(id)))
  for (const node of graph.nodes) {
    const name = `${label}/${node.name}`
    if (node.kind === 'view') values.set(node.out, storedValue(values, node.input))
    else if (node.kind === 'op') appendKernel(state, name, bindKernel(graph, node, binding, state.config.manifest), values, info)
    else {
      values.set(node.out, allocate(state, info(node.out)))
      const used: StorageId[] = []
      const use = (id: ValueId): StorageId => {
        const storage = state.memory.read(storedValue(values, id), state.steps.length, name)
        used.push(storage)
        return storage
      }
      for (const step of matmulSteps(name, graph, node, binding, state.config, use)) state.steps.push(step)
      for (const storage of used) state.memory.extend(storage, state.steps.length - 1)
    }
  }
  for (const [name, id] of Object.entries(graph.outputs)) {
    const wire = wired(label, 'output', name, application.outputs)
    if (state.named.has(wire))
      throw usageError('program.value', `${label}: output ${name} is wired to ${wire}, which already has a value`)
    state.named.set(wire, { info: info(id), ...storedValue(values, id) })
  }
}

/** Appends a kernel. An output that updates an input becomes a new value in the input's memory, or in a copy of a weight or a program input. */
function appendKernel(
  state: State,
  name: string,
  bound: BoundKernel,
  values: Map<ValueId, StoredValue>,
  info: (id: ValueId) => ValueInfo,
): void {
  const { memory, steps } = state
  const buffers = bound.entry.buffers.map((buffer, i) => ({ ...buffer, id: bound.values[i] ?? -1 }))
  const inputs = new Map(buffers.flatMap(({ access, id }) => (access === 'in' ? [[id, storedValue(values, id)] as const] : [])))
  for (const { updates } of buffers) {
    const before = buffers.find((buffer) => buffer.name === updates)
    const stored = before === undefined ? undefined : inputs.get(before.id)
    if (before === undefined || stored === undefined || !isKept(state, stored.storage)) continue
    const copy = allocate(state, info(before.id))
    const from = memory.read(stored, steps.length, name)
    steps.push({ kind: 'copy', label: `${name}.${before.name}`, from, to: copy.storage })
    inputs.set(before.id, copy)
  }
  const read = new Map([...inputs].map(([id, stored]) => [id, memory.read(stored, steps.length, name)] as const))
  for (const { access, id, updates } of buffers) {
    if (access === 'in') continue
    const before = buffers.find((buffer) => buffer.name === updates)
    const stored = before === undefined ? undefined : inputs.get(before.id)
    const twin = buffers.find((other) => other !== before && other.access === 'in' && read.get(other.id) === stored?.storage)
    if (stored !== undefined && twin !== undefined) {
      throw usageError(
        'program.replaced',
        `${name} replaces elements of ${updates} in place and reads the same memory as ${twin.name}`,
        {
          hint: 'wire it to two values, or split it into two nodes',
        },
      )
    }
    values.set(id, stored === undefined ? allocate(state, info(id)) : memory.replace(stored, name))
  }
  const storageOf = (id: ValueId): StorageId => read.get(id) ?? storedValue(values, id).storage
  steps.push(kernelStep(name, bound, storageOf))
  for (const { id } of buffers) memory.extend(storageOf(id), steps.length - 1)
}

/** True if a storage must keep its value for the next run: that of a weight or a program input. */
const isKept = ({ memory, inputs }: State, id: StorageId): boolean =>
  memory.at(id).weight !== undefined || Object.values(inputs).some(({ storage }) => storage === id)

/** Program value to which a graph input is wired; the first use of a program input creates it. */
function inputValue(state: State, { label, inputs }: GraphApplication, name: string, info: ValueInfo): StoredValue {
  const wire = wired(label, 'input', name, inputs)
  const known = state.named.get(wire)
  if (known !== undefined) {
    expectSame(`${label}: input ${name} (${wire})`, info, known.info)
    return known
  }
  if (!state.config.inputs.includes(wire)) {
    throw usageError('program.value', `${label}: input ${name} is wired to ${wire}, which nothing computes before`, {
      hint: `program inputs: ${list(state.config.inputs)}; computed: ${list(state.named.keys())}`,
    })
  }
  const value = { info, ...allocate(state, info) }
  state.named.set(wire, value)
  state.inputs[wire] = value
  return value
}

function weightValue(state: State, application: GraphApplication, name: string, info: ValueInfo): StoredValue {
  const { label } = application
  const { name: tensor } = weightSource(application, name)
  const weight = state.config.weights.get(tensor)
  if (weight === undefined) {
    throw usageError('program.weight', `${label}: weight ${name} is wired to ${tensor}, which does not exist`)
  }
  expectSame(`${label}: weight ${name} (${tensor})`, info, { ...weight, layout: weight.layout ?? 'row' })
  return allocate(state, info, tensor)
}

const allocate = ({ memory, steps, config }: State, info: ValueInfo, weight?: string): StoredValue =>
  memory.allocate(valueBytes(info, config.layouts), steps.length, weight)

function storedValue(values: ReadonlyMap<ValueId, StoredValue>, id: ValueId): StoredValue {
  const stored = values.get(id)
  if (stored === undefined) throw new Error(`internal: graph value ${id} is used before it is computed`)
  return stored
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

function expectSame(what: string, expected: ValueInfo, found: ValueInfo): void {
  if (describeValue(expected) !== describeValue(found)) {
    throw usageError('program.shape', `${what}: expected ${describeValue(expected)}, got ${describeValue(found)}`)
  }
}
