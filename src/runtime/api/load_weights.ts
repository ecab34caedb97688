/** Weights in the form that a plan reads: unchanged, in a layout, several concatenated, or as int8. */
import type { DType } from '../../ir/dtype.js'
import type { LayoutDecl } from '../../lang/layout.js'
import type { GraphApplication } from '../application.js'
import { encode } from '../buffer.js'
import type { Layouts } from '../layouts.js'
import { prepareInt8 } from '../prepare_weights.js'
import type { TensorSlice as HeldTensor } from '../session.js'
import type { Weight, WeightTensor } from '../weight.js'
import { weightSources } from '../weight_tensors.js'
import type { AnyTensor } from './call_types.js'
import type { DeviceCore } from './core.js'
import { DeviceTensor, type RetainedMemory } from './device_tensor.js'
import { bytesIn, layoutOf } from './form.js'
import { refuse } from './load_checks.js'
import { bytesOf, type Tensor, toNumbers } from './tensor.js'

type Loaded = { readonly name: string }

export interface PreparedWeights {
  /** Weights to upload. */
  readonly uploaded: Readonly<Record<string, Weight>>
  /** Weights that are on the device already. */
  readonly there: ReadonlyMap<string, HeldTensor>
}

/**
 * @param retain called with each reference to device memory
 * @throws usage `load.layout`, `load.weight` if the plan's form cannot be computed from the given tensors, `layout.unknown`
 */
export function preparedWeights(
  core: DeviceCore,
  loaded: Loaded,
  applications: readonly GraphApplication[],
  weights: Readonly<Record<string, AnyTensor>>,
  layouts: Layouts,
  retain: (memory: RetainedMemory) => void,
): PreparedWeights {
  const uploaded: Record<string, Weight> = {}
  const there = new Map<string, HeldTensor>()
  const quantised = new Set<string>()
  for (const { name, parts, layout, made } of applications.flatMap(weightSources)) {
    if (made !== undefined) for (const part of parts) quantised.add(part)
    if (made !== undefined || uploaded[name] !== undefined || there.has(name)) continue
    const [first, ...more] = parts.map((part) => weights[part])
    if (first === undefined) continue
    if (first instanceof DeviceTensor && more.length === 0) {
      expectLayout(loaded, name, layout, first)
      const memory = first.retain(`${loaded.name}: ${name}`, core)
      retain(memory)
      there.set(name, { dtype: first.dtype, shape: first.shape, layout, slice: memory.slice })
    } else uploaded[name] = stacked(loaded, name, [first, ...more], layoutOf(layouts, layout, first.shape.length), layout)
  }
  if (quantised.size === 0) return { uploaded, there }
  // Int8 weights are quantised from float32, which represents the storage types of models exactly.
  const exact = Object.fromEntries([...quantised].map((part) => [part, floats(onHost(loaded, part, weights[part]))]))
  return { uploaded: { ...uploaded, ...prepareInt8(applications, exact, layouts) }, there }
}

function floats({ dtype, shape, data }: Tensor<DType>): WeightTensor {
  const values = toNumbers({ dtype, shape, data } as Tensor<DType>)
  return { dtype: 'f32', shape, data: dtype === 'f32' ? bytesOf(data) : encode('f32', Float32Array.from(values)) }
}

function onHost(loaded: Loaded, name: string, part: AnyTensor | undefined): Tensor<DType> {
  if (part !== undefined && !(part instanceof DeviceTensor)) return part
  throw refuse(loaded, 'weight', `the plan converts ${name}: expected a host tensor, got a device tensor`)
}

/** Concatenates weights along their first axis; a single one is unchanged. */
function stacked(
  loaded: Loaded,
  name: string,
  parts: readonly (AnyTensor | undefined)[],
  layout: LayoutDecl | undefined,
  layoutName: string,
): WeightTensor {
  const tensors = parts.map((part) => onHost(loaded, name, part))
  const [first] = tensors
  if (first === undefined) throw new Error(`internal: ${name} has no parts`)
  if (tensors.length === 1) return { dtype: first.dtype, shape: first.shape, layout: layoutName, data: bytesIn(first, layout) }
  const rest = first.shape.slice(1)
  const different = tensors.find(({ shape }) => shape.slice(1).join() !== rest.join())
  if (different !== undefined) {
    const shapes = [first, different].map(({ shape }) => `[${shape.join(', ')}]`)
    throw refuse(loaded, 'weight', `the plan stacks ${name}, whose parts are ${shapes.join(' and ')}`)
  }
  if (layout !== undefined)
    throw refuse(loaded, 'weight', `${name} cannot be stacked from its parts: the plan stores it in layout ${layoutName}`)
  const rows = tensors.reduce((sum, { shape }) => sum + (shape[0] ?? 0), 0)
  const data = Buffer.concat(tensors.map((tensor) => bytesIn(tensor, undefined)))
  return { dtype: first.dtype, shape: [rows, ...rest], layout: layoutName, data }
}

function expectLayout(loaded: Loaded, name: string, wanted: string, { layout }: DeviceTensor): void {
  const found = layout?.name ?? 'row'
  if (found !== wanted)
    throw refuse(loaded, 'layout', `${name}: expected a device tensor in layout ${wanted}, got layout ${found}`)
}
