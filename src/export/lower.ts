/**
 * Lowers a compiled program to the data that an export writes: storages and steps as the runtime flattens them, with every size an expression of the
 * open dimensions. The expressions are checked against the runtime's own flattening at several sizes; a program for which the two differ is refused.
 */
import type { Manifest } from '../emit/manifest/manifest.js'
import { HeddleError, usageError } from '../errors.js'
import type { DType } from '../ir/dtype.js'
import { substitute } from '../lang/program/match.js'
import type { CompiledProgram } from '../program/index.js'
import { bindingOf, valueInfo } from '../runtime/bind.js'
import type { Layouts } from '../runtime/layouts.js'
import { type FlatProgram, flatten } from '../runtime/program_flatten.js'
import { valueBytes } from '../runtime/program_states.js'
import { tensorOf, type WiredProgram } from '../runtime/program_wiring.js'
import { recording } from '../runtime/recording.js'
import { weightSource } from '../runtime/weight_tensors.js'
import { exported } from './by_rows.js'
import { type CallerValues, callerValues } from './caller_values.js'
import { bytesOf, type Known, type KnownLayouts } from './forms.js'
import {
  type Home,
  keysOf,
  type Lowered,
  type LoweredStep,
  type LoweredStorage,
  type LoweredValue,
  type LoweredWeight,
} from './lowered.js'
import { openDims, trialSizes } from './open_dims.js'
import { expectSame } from './same.js'
import { constant, type Size } from './sizes.js'
import { Symbolic } from './symbolic.js'
import { storedShape } from './weights_file.js'

type Sizes = Readonly<Record<string, number>>

export interface LowerOptions {
  readonly compiled: CompiledProgram
  readonly wired: WiredProgram
  readonly manifest: Manifest
  readonly layouts: Layouts
  /** Storage type of every type parameter. */
  readonly dtype: DType
  /** Sizes of dimensions that are fixed in addition to those of weights. */
  readonly dims: Sizes
  /** Tensor names by the program's weight names; the names themselves if undefined. */
  readonly tensors?: Readonly<Record<string, string>>
}

/**
 * @throws usage `export.dims`, `export.layout`, `export.matmul`, `export.constant`, `export.sizes`, and what flattening throws
 */
export function lower(given: LowerOptions): Lowered {
  const { compiled, layouts, dtype } = given
  const types = typesOf(compiled, dtype)
  const { open, fixed, most } = openDims(compiled, given.dims)
  const { applications, left } = exported(given.wired.applications, fixed)
  const options = { ...given, wired: { ...given.wired, applications } }
  const known: Known = Object.fromEntries(Object.entries(fixed).map(([dim, size]) => [dim, constant(size)]))
  const weights = weightsOf(options, trialSizes(compiled, open, fixed, 0), types)
  const flatAt = (trial: number) => {
    const dims = trialSizes(compiled, open, fixed, trial)
    return { dims, flat: flattenAt(options, dims, types, weights) }
  }
  const first = flatAt(0)
  const { flat } = first
  const memory: KnownLayouts = { layouts, forms: options.manifest.layouts ?? {} }
  const symbolic = new Symbolic({ manifest: options.manifest, applications, memory, fixed: known, types }, flat)
  const values = callerValues(options, flat, { known, types, memory })
  const { states, inputs, outputs } = values
  for (const { storage, dtype, shape, layout } of [...states, ...inputs, ...outputs])
    symbolic.learn(storage, { dtype, shape, layout })
  symbolic.spread()
  const storages = storagesOf(flat, weights, values, (id) => bytesOf(symbolic.form(id), memory))
  const steps = flat.steps.map((step) => symbolic.step(step))
  const lowered: Lowered = {
    name: compiled.name,
    plan: compiled.plan,
    left,
    dtype,
    dims: open,
    fixed,
    most: Object.fromEntries(Object.entries(most).map(([dim, extent]) => [dim, substitute(extent, known)])),
    weights: weights.map((weight) => ({ ...weight, shape: storedShape(weight) })),
    inputs,
    outputs,
    states,
    storages,
    steps,
    fenced: readsInputsAsConstants(steps, storages, options.manifest),
    moved: movedOutputs(outputs, storages),
  }
  for (const trial of [first, flatAt(1), flatAt(2)]) expectSame(lowered, trial.flat, trial.dims)
  return lowered
}

const typesOf = ({ values, weights, graphs }: CompiledProgram, dtype: DType): Readonly<Record<string, DType>> =>
  Object.fromEntries(
    [...Object.values(values), ...Object.values(weights), ...Object.values(graphs).flatMap((graph) => graph.values)].flatMap(
      (value) => (typeof value.dtype === 'string' ? [] : [[value.dtype.param, dtype]]),
    ),
  )

/** Every tensor that an application reads, without duplicates. Weights have fixed dimensions only, so the sizes of open dimensions do not matter. */
function weightsOf(
  { wired, compiled, layouts, tensors = {} }: LowerOptions,
  dims: Sizes,
  types: Readonly<Record<string, DType>>,
): LoweredWeight[] {
  const found = new Map<string, LoweredWeight>()
  const named = new Map(Object.entries(tensors).map(([weight, tensor]) => [tensor, weight]))
  for (const application of wired.applications) {
    for (const [name, id] of Object.entries(application.graph.weights)) {
      const source = weightSource(application, name)
      if (found.has(source.name)) continue
      const info = valueInfo(application.graph, id, bindingOf(application, { dims, types }))
      const parts = source.made !== undefined || source.parts.length < 2 ? [] : source.parts
      found.set(source.name, {
        name: source.name,
        dtype: info.dtype,
        shape: info.shape,
        layout: info.layout,
        bytes: valueBytes(info, layouts),
        parts: parts.map((part) => ({ name: part, ...tensorOf(compiled.weights[named.get(part) ?? part], part, dims, types) })),
      })
    }
  }
  return [...found.values()]
}

function flattenAt(
  { compiled, wired, manifest, layouts }: LowerOptions,
  dims: Sizes,
  types: Readonly<Record<string, DType>>,
  weights: readonly LoweredWeight[],
): FlatProgram {
  const { device } = recording('simt')
  const states = Object.entries(compiled.states).map(([name, { next }]) => {
    const tensor = tensorOf(compiled.values[name], name, dims, types)
    const bytes = valueBytes(tensor, layouts)
    const slice = { buffer: device.allocate(bytes), offset: 0, bytes }
    return [name, { tensor: { ...tensor, slice }, ...(next === undefined ? {} : { next }) }] as const
  })
  const config = {
    ...wired,
    outputs: [...new Set(wired.outputs)],
    states: Object.fromEntries(states),
    ...{ dims, types, manifest, layouts },
    architecture: 'simt',
    weights: new Map(weights.map((weight) => [weight.name, weight])),
  }
  try {
    return flatten(config)
  } catch (error) {
    if (!(error instanceof HeddleError) || error.code !== 'bind.extent') throw error
    throw usageError('export.dims', `${compiled.name} does not run at every size: ${error.message}`, {
      hint: 'fix the dimension that sets it, such as --dims k=4',
      cause: error,
    })
  }
}

/** Storages of the program with their homes. @param bytes of a storage */
function storagesOf(
  flat: FlatProgram,
  weights: readonly LoweredWeight[],
  { states, inputs, outputs }: CallerValues,
  bytes: (id: number) => Size,
): readonly LoweredStorage[] {
  const homes = { weights: weights.map(({ name }) => name), states: states.map(({ name }) => name), inputs, outputs }
  return flat.storages.map(({ weight, state, first, last }, id) => {
    const [home, index] = homeOf(id, { weight, state }, homes)
    return { home, index, first, last, bytes: bytes(id) }
  })
}

/** Outputs that are not in the caller's memory after the last step. */
const movedOutputs = (outputs: readonly LoweredValue[], storages: readonly LoweredStorage[]): Lowered['moved'] =>
  outputs.flatMap(({ storage }, output) => {
    const { home, index } = storages[storage] ?? { home: 'arena', index: 0 }
    return home === 'output' && index === output ? [] : [{ output, storage }]
  })

interface Homes {
  readonly weights: readonly string[]
  readonly states: readonly string[]
  readonly inputs: readonly { readonly storage: number }[]
  readonly outputs: readonly { readonly storage: number }[]
}

/** Storage of a value. A value that is exactly one output lies in the caller's memory. */
function homeOf(
  id: number,
  { weight, state }: { readonly weight: string | undefined; readonly state: string | undefined },
  { weights, states, inputs, outputs }: Homes,
): readonly [Home, number] {
  if (weight !== undefined) return ['weight', weights.indexOf(weight)]
  if (state !== undefined) return ['state', states.indexOf(state)]
  const input = inputs.findIndex(({ storage }) => storage === id)
  if (input >= 0) return ['input', input]
  const [output = -1, ...more] = outputs.flatMap(({ storage }, i) => (storage === id ? [i] : []))
  return output >= 0 && more.length === 0 ? ['output', output] : ['arena', 0]
}

/**
 * True if a kernel reads an input as a constant, which may happen before earlier launches are complete.
 * @throws usage `export.constant` for a kernel whose constant a step may write
 */
function readsInputsAsConstants(
  steps: readonly LoweredStep[],
  storages: readonly LoweredStorage[],
  { kernels }: Manifest,
): boolean {
  const entries = new Map(kernels.map((entry) => [entry.key, entry]))
  const launched = steps.flatMap((step) => keysOf(step).map((key) => ({ ...step, key })))
  const homes = launched.flatMap(({ label, key, storages: used }) =>
    (entries.get(key)?.buffers ?? []).flatMap(({ name, constant: isConstant }, i) => {
      const home = storages[used[i] ?? -1]?.home
      if (isConstant !== true) return []
      if (home === 'weight' || home === 'input') return [home]
      throw usageError(
        'export.constant',
        `${label}: expected a weight or an input for ${name}, which ${key} reads as a constant`,
        {
          hint: 'declare it in the graph as an input instead of a weight: the kernel of its plan then reads it as an input',
        },
      )
    }),
  )
  return homes.includes('input')
}
