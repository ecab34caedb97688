/** Loads a model: finds its plan, checks weights and states, and uploads them to the device. */
import type { DType } from '../../ir/dtype.js'
import type { GraphDecl } from '../../lang/graph.js'
import type { ProgramDecl } from '../../lang/program/program.js'
import type { Layouts } from '../layouts.js'
import { expectPlanTypes } from '../plan_types.js'
import { openSession, type Session } from '../session.js'
import type { AnyTensor } from './call_types.js'
import type { DeviceCore } from './core.js'
import { type Declared, declaredOf } from './declared.js'
import type { RetainedMemory } from './device_tensor.js'
import { anyTensor, recordOf, refuse } from './load_checks.js'
import { layoutSetOf } from './load_layouts.js'
import { firstValues, keptInputs, openStateMemory } from './load_states.js'
import { TypeChoice } from './load_types.js'
import { preparedWeights } from './load_weights.js'
import { LoadedModel } from './model.js'
import type { LoadOptions } from './model_types.js'
import { listed, nameHint } from './names.js'
import { checkOptions } from './options.js'
import type { Project } from './project.js'
import { Sizes } from './sizes.js'
import { type ModelSource, type SourceState, sourceOf } from './source.js'

const optionNames = [
  'plan',
  'dtype',
  'weights',
  'attrs',
  'config',
  'states',
  'dims',
  'scales',
  'packed',
  'layouts',
  'conversions',
  'signal',
]

/** Options of graphs and programs. Those that differ between the two are checked by kind. */
type AnyOptions = Omit<LoadOptions, Own> & { readonly [K in Own | 'config']?: unknown }
type Own = 'attrs' | 'weights' | 'states' | 'scales'

/** Untyped implementation of `Device.load`. */
export async function loadModel(core: DeviceCore, decl: GraphDecl | ProgramDecl, options: AnyOptions): Promise<LoadedModel> {
  core.expectOpen('load')
  checkOptions('load', 'load', optionNames, options)
  const { signal } = options
  signal?.throwIfAborted()
  const project = await core.project()
  const { manifest } = project
  const declared = declaredOf(decl, options.attrs, options.config)
  const { layouts, conversions } = layoutSetOf(declared, options)
  const weights = weightsFor(declared, options.weights)
  const kept = declared.kind === 'graph' ? keptInputs(declared, options.states) : {}
  const types = new TypeChoice(declared, options.dtype)
  for (const [name, value] of Object.entries(declared.weights)) bindType(types, name, value, weights[name])
  for (const [name, { value }] of Object.entries(kept)) bindType(types, name, declared.inputs[name], value)
  const chosen = types.all()
  const source = sourceOf(declared, {
    plan: options.plan,
    manifest,
    info: core.native.info(),
    types: chosen,
    packed: options.packed === true,
    conversions,
    scales: options.scales,
  })
  expectPlanTypes(source.plan.name, source.applications, chosen, manifest)
  const states = statesOf(source, kept)
  const values =
    declared.kind === 'graph'
      ? Object.fromEntries(Object.entries(kept).map(([name, { value }]) => [name, value]))
      : firstValues(declared, states, options.states)
  const given = { source, types, weights, states, values }
  const sizes = sizesOf(given, options.dims)
  return upload(core, project, { ...given, layouts, types: chosen, ...sizes }, signal)
}

/** Plan and values of a model, before they are uploaded. */
interface GivenModel {
  readonly source: ModelSource
  readonly weights: Readonly<Record<string, AnyTensor>>
  readonly states: Readonly<Record<string, SourceState>>
  /** Initial values of states. */
  readonly values: Readonly<Record<string, AnyTensor>>
}

interface KnownSizes {
  /** Sizes fixed by weights, states and the option `dims`. */
  readonly sizes: Sizes
  /** Extents of the dimensions of states. */
  readonly stateSizes: Readonly<Record<string, number>>
}

/** Solves the sizes of a model from the shapes of weights and states. @throws usage `load.dims`, `load.rank`, `load.extent`, `load.dtype` */
function sizesOf(
  { source, types, weights, states, values }: GivenModel & { readonly types: TypeChoice },
  givenDims: AnyOptions['dims'],
): KnownSizes {
  const sizes = new Sizes(source.name, 'load')
  sizes.give(source.dims, givenDims)
  for (const [name, value] of Object.entries(source.weights)) bindShape(sizes, name, value, weights[name])
  for (const [name, { value }] of Object.entries(states)) {
    bindType(types, name, value, values[name])
    bindShape(sizes, name, value, values[name])
  }
  const stateDims = [...new Set(Object.values(states).flatMap(({ value }) => value.shape.flatMap(({ dims }) => dims)))]
  const known = new Sizes(source.name, 'load', sizes)
  known.assumeTypical(source.typical)
  known.assume(source.factors)
  return { sizes, stateSizes: known.all(stateDims) }
}

/** A checked model, ready to be uploaded. */
interface CheckedModel extends GivenModel, KnownSizes {
  readonly layouts: Layouts
  readonly types: Readonly<Record<string, DType>>
}

/** Uploads weights and initial states to the device. */
async function upload(
  core: DeviceCore,
  { manifest, kernels }: Project,
  { source, layouts, weights, states, values, types, sizes, stateSizes }: CheckedModel,
  signal: AbortSignal | undefined,
): Promise<LoadedModel> {
  const memory: RetainedMemory[] = []
  let session: Session | undefined
  try {
    const prepared = preparedWeights(core, source, source.applications, weights, layouts, (retained) => memory.push(retained))
    const config = { device: core.native, library: kernels, manifest, layouts, weights: prepared.uploaded }
    session = await core.track(openSession(config, signal))
    const tensors = new Map([...session.weights, ...prepared.there])
    const opened = await openStateMemory({ core, layouts, types, sizes: stateSizes }, states, values)
    const release = (): void => {
      opened.release()
      session?.release()
      for (const retained of memory) retained.release()
    }
    return new LoadedModel({
      core,
      source,
      session: { ...session, weights: tensors },
      layouts,
      types,
      sizes,
      states: opened.states,
      release,
    })
  } catch (error) {
    session?.release()
    for (const retained of memory) retained.release()
    throw error
  }
}

type Value = Declared['weights'][string] | undefined

function bindType(types: TypeChoice, name: string, value: Value, given: AnyTensor | undefined): void {
  if (value !== undefined && given !== undefined) types.bind(name, value, given.dtype)
}

function bindShape(sizes: Sizes, name: string, value: Value, given: AnyTensor | undefined): void {
  if (value !== undefined && given !== undefined) sizes.bind(name, value.shape, given.shape)
}

/** States of a model: those of a program, and the inputs of a graph that its caller keeps between runs. */
const statesOf = (
  { states, inputs, outputs }: ModelSource,
  kept: ReturnType<typeof keptInputs>,
): Readonly<Record<string, SourceState>> => ({
  ...states,
  ...Object.fromEntries(
    Object.entries(kept).flatMap(([name, { next }]) => {
      const value = inputs[name]
      return value === undefined
        ? []
        : [[name, { value, cleared: false, ...(next === undefined ? {} : { next: outputs[next] }) }]]
    }),
  ),
})

/** Checks that there is a tensor for each weight, and no others. */
function weightsFor(declared: Declared, given: unknown): Readonly<Record<string, AnyTensor>> {
  const tensors = recordOf(declared, 'weights', given)
  const names = Object.keys(declared.weights)
  const unknown = Object.keys(tensors).find((name) => !names.includes(name))
  if (unknown !== undefined)
    throw refuse(declared, 'weight', `there is no weight ${unknown}`, nameHint('weights', names, unknown))
  return Object.fromEntries(
    names.map((name) => {
      const tensor = tensors[name]
      if (tensor === undefined) throw refuse(declared, 'weight', `weight ${name} is missing`, listed('weights', names))
      return [name, anyTensor(declared, name, tensor)]
    }),
  )
}
