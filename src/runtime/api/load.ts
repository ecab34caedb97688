/** Loading a model: its plan found, what is given once checked and brought to the device. */
import type { GraphDecl } from '../../lang/graph.js'
import type { Layouts } from '../layouts.js'
import { type DeviceTensor as HeldTensor, openSession, type Session } from '../session.js'
import type { WeightTensor } from '../weight.js'
import { weightSources } from '../weight_tensors.js'
import { checkOptions } from './call.js'
import type { AnyTensor } from './call_types.js'
import type { DeviceCore } from './core.js'
import { DeviceTensor, type HeldMemory } from './device_tensor.js'
import { layoutOf } from './form.js'
import { anyTensor, recordOf, refuse } from './load_checks.js'
import { checkState, openStateMemory } from './load_states.js'
import { TypeChoice } from './load_types.js'
import { stacked } from './load_weights.js'
import { LoadedModel } from './model.js'
import type { LoadOptions, StateOption } from './model_types.js'
import { listed, nameHint } from './names.js'
import { Sizes } from './sizes.js'
import { graphSource, type ModelSource, unfused } from './source.js'
import { typeName } from './tensor.js'

const optionNames = ['plan', 'dtype', 'weights', 'attrs', 'states', 'dims', 'layouts', 'signal']

/** What `Device.load` does, without its types. */
export async function loadModel(core: DeviceCore, decl: GraphDecl, options: LoadOptions): Promise<LoadedModel> {
  core.expectOpen('load')
  checkOptions('load', 'load', optionNames, options)
  const { signal } = options
  signal?.throwIfAborted()
  const { manifest, kernels } = await core.project()
  const source = graphSource(decl, options.plan ?? unfused, manifest)
  const layouts: Layouts = Object.fromEntries((options.layouts ?? []).map((layout) => [layout.name, layout]))
  const weights = tensorsFor(source, 'weight', Object.keys(source.weights), options.weights)
  const stateOptions = recordOf(source, 'states', options.states) as Readonly<Record<string, StateOption>>
  const states = Object.fromEntries(
    Object.entries(stateOptions).map(([name, state]) => [name, checkState(source, name, state)] as const),
  )
  const types = new TypeChoice(source, options.dtype)
  const sizes = new Sizes(source.name, 'load')
  sizes.give(source.dims, options.dims)
  for (const [name, given] of [...Object.entries(weights), ...Object.entries(states)]) {
    const value = source.weights[name] ?? source.inputs[name]
    if (value === undefined) continue
    types.bind(name, value, given.dtype)
    sizes.bind(name, value.shape, given.shape)
  }
  const chosen = types.all()
  const attrs = checkAttrs(source, options.attrs)
  const applications = source.applications(attrs)
  const device = core.native
  const memory: HeldMemory[] = []
  let session: Session | undefined
  try {
    const uploaded: Record<string, WeightTensor> = {}
    const there = new Map<string, HeldTensor>()
    for (const { name, parts, layout } of applications.flatMap(weightSources)) {
      const [first, ...more] = parts.map((part) => weights[part])
      if (first === undefined) continue
      if (first instanceof DeviceTensor && more.length === 0) {
        expectLayout(source, name, layout, first)
        const held = first.hold(`${source.name}: ${name}`, core)
        memory.push(held)
        there.set(name, { dtype: first.dtype, shape: first.shape, layout, slice: held.slice })
      } else uploaded[name] = stacked(source, name, [first, ...more], layoutOf(layouts, layout, first.shape.length), layout)
    }
    session = await core.track(openSession({ device, library: kernels, manifest, layouts, weights: uploaded }, signal))
    const tensors = new Map([...session.weights, ...there])
    const opened = await openStateMemory(core, layouts, source, chosen, states, stateOptions)
    const release = (): void => {
      opened.release()
      session?.release()
      for (const held of memory) held.release()
    }
    return new LoadedModel({
      core,
      source,
      applications,
      session: { ...session, weights: tensors },
      layouts,
      types: chosen,
      sizes,
      dims: source.dims,
      states: opened.states,
      release,
    })
  } catch (error) {
    session?.release()
    for (const held of memory) held.release()
    throw error
  }
}

/** The tensors of these names, and no others. */
function tensorsFor(
  source: ModelSource,
  what: 'weight',
  names: readonly string[],
  given: unknown,
): Readonly<Record<string, AnyTensor>> {
  const tensors = recordOf(source, `${what}s`, given)
  const unknown = Object.keys(tensors).find((name) => !names.includes(name))
  if (unknown !== undefined) throw refuse(source, what, `there is no ${what} ${unknown}`, nameHint(`${what}s`, names, unknown))
  return Object.fromEntries(
    names.map((name) => {
      const tensor = tensors[name]
      if (tensor === undefined) throw refuse(source, what, `${what} ${name} is missing`, listed(`${what}s`, names))
      return [name, anyTensor(source, name, tensor)]
    }),
  )
}

function checkAttrs(source: ModelSource, given: unknown): Record<string, number> {
  const attrs = recordOf(source, 'attrs', given)
  const unknown = Object.keys(attrs).find((name) => !source.attrs.includes(name))
  if (unknown !== undefined) {
    throw refuse(source, 'attrs', `there is no attribute ${unknown}`, nameHint('attributes', source.attrs, unknown))
  }
  return Object.fromEntries(
    source.attrs.map((name) => {
      const value = attrs[name]
      if (value === undefined) throw refuse(source, 'attrs', `attribute ${name} is missing`, `attrs: { ${name}: ... }`)
      if (typeof value === 'number' && Number.isFinite(value)) return [name, value]
      throw refuse(
        source,
        'attrs',
        `attribute ${name} must be a finite number, got ${typeof value === 'number' ? value : typeName(value)}`,
      )
    }),
  )
}

function expectLayout(source: ModelSource, name: string, wanted: string, { layout }: DeviceTensor): void {
  const found = layout?.name ?? 'row'
  if (found !== wanted)
    throw refuse(source, 'layout', `${name} must lie in layout ${wanted}, the device tensor given lies in ${found}`)
}
