/**
 * Weights of applications in the form in which they are uploaded: concatenated where a plan stacks, int8 where it quantises. They are computed
 * lazily, so that host memory holds one tensor at most.
 */
import { usageError } from '../errors.js'
import { getOwn } from '../ir/get_own.js'
import { decode } from './buffer.js'
import { findLayout, type Layouts } from './layouts.js'
import type { GraphApplication } from './program.js'
import {
  channelMaxima,
  givenMaxima,
  intoLayout,
  quantisedBytes,
  quantiseWeights,
  stepsOf,
  type WeightMatrix,
} from './quantise_weights.js'
import { computedTensor, type DeferredTensor, type Int8Tensor, inMemory, piecesOf, type Weight, weightBytes } from './weight.js'
import { type WeightSource, weightSources } from './weight_tensors.js'

type Weights = Readonly<Record<string, Weight>>

/** Int8 weights and maxima that are known beforehand, by tensor. */
export interface KnownInt8 {
  /** Weights that the model itself stores as int8. */
  readonly stored?: Readonly<Record<string, Int8Tensor>>
  /** Magnitudes that become 127, one per output channel or one for all; by default the largest of each channel. */
  readonly maxima?: Readonly<Record<string, number | readonly number[]>> | undefined
}

/** Weights in float32, and their given maxima. */
interface Exact {
  readonly exact: Weights
  readonly maxima: NonNullable<KnownInt8['maxima']>
}

/**
 * Prepares the weights that the applications read, and no others. `exact` holds the model's weights in float32. Int8 weights are computed from
 * these, so that they are rounded once, except for those that the model itself stores as int8. Reading an int8 weight throws usage `quant.*`.
 * @throws usage `program.weight` for a part that does not exist, and for one whose rows differ in form from those of the others
 */
export const prepareWeights = (
  applications: readonly GraphApplication[],
  weights: Weights,
  layouts: Layouts = {},
  exact: Weights = weights,
  known: KnownInt8 = {},
): Record<string, Weight> => prepared(applications.flatMap(weightSources), { weights, layouts, exact }, known)

/** The int8 weights that the applications read, and their scales. @param exact the tensors that they are made of. @throws as `prepareWeights` */
export const prepareInt8 = (
  applications: readonly GraphApplication[],
  exact: Weights,
  layouts: Layouts,
): Record<string, Weight> =>
  prepared(
    applications.flatMap(weightSources).filter(({ made }) => made !== undefined),
    { weights: {}, layouts, exact },
    {},
  )

interface Given {
  readonly weights: Weights
  readonly layouts: Layouts
  readonly exact: Weights
}

function prepared(
  sources: readonly WeightSource[],
  { weights, layouts, exact }: Given,
  { stored = {}, maxima = {} }: KnownInt8,
): Record<string, Weight> {
  const floats = { exact, maxima }
  const made: Record<string, Weight> = {}
  const known = new Map<string, Float32Array>()
  for (const source of sources) {
    if (made[source.name] !== undefined) continue
    if (source.made !== undefined && source.parts.some((part) => getOwn(stored, part) !== undefined)) {
      made[source.name] = asStored(source, { ...madeInt8(source, floats, stored), ...stored }, layouts)
      continue
    }
    const tensor = stack(source, source.made === undefined ? weights : exact)
    if (tensor === undefined) continue
    made[source.name] = source.made === undefined ? tensor : int8(source, tensor, layouts, { ...floats, known })
  }
  return made
}

/** Maxima of the channels of concatenated parts. */
function maximaOf(parts: readonly string[], matrix: WeightMatrix, { exact, maxima }: Exact): Float32Array {
  const all = channelMaxima(matrix)
  let from = 0
  for (const part of parts) {
    const to = from + (exact[part]?.shape[0] ?? 0)
    all.set(givenMaxima(part, all.slice(from, to), getOwn(maxima, part)), from)
    from = to
  }
  return all
}

/** @param known scales of the matrices read so far, by their parts: a matrix has the same scales in every layout */
function int8(
  { name, parts, made, layout, factor = 1 }: WeightSource,
  weight: Weight,
  layouts: Layouts,
  { known, ...floats }: Exact & { readonly known: Map<string, Float32Array> },
): DeferredTensor {
  if (weight.dtype !== 'f32') throw new Error(`internal: ${name} is made from ${weight.dtype}`)
  const [rows = 1, ...rest] = weight.shape
  const columns = rest.reduce((product, extent) => product * extent, 1)
  const key = parts.join('+')
  const matrix = async (signal: AbortSignal | undefined): Promise<WeightMatrix> => {
    const { data } = await inMemory(weight, signal)
    return { name: key, values: decode('f32', data), rows, columns }
  }
  if (made === 'steps') {
    return computedTensor('f32', [rows], async function* (signal) {
      const steps = known.get(key) ?? stepsOf(maximaOf(parts, await matrix(signal), floats))
      known.set(key, steps)
      // Product of two float32 numbers, rounded once, as a kernel would compute it.
      yield bytesOf(steps.map((step) => step * factor))
    })
  }
  const stored = layout === 'row' ? undefined : findLayout(layouts, layout, 2)
  return {
    ...{ dtype: 'i8', shape: weight.shape, layout, bytes: quantisedBytes({ name: key, rows, columns }, stored) },
    async *pieces(signal) {
      const read = await matrix(signal)
      const { values, scales } = quantiseWeights(read, stored, maximaOf(parts, read, floats))
      known.set(key, scales)
      yield bytesOf(values)
    },
  }
}

/** Quantises the parts that the model has as floats, next to parts that it has as int8: scales are per row, so each part is independent. */
function madeInt8(source: WeightSource, floats: Exact, stored: Readonly<Record<string, Int8Tensor>>): Record<string, Int8Tensor> {
  const made: Record<string, Int8Tensor> = {}
  for (const part of source.parts) {
    const weight = getOwn(floats.exact, part)
    if (getOwn(stored, part) !== undefined || weight === undefined) continue
    const alone = { name: part, parts: [part], layout: 'row' }
    const known = new Map<string, Float32Array>()
    const of = (made: 'int8' | 'steps') => int8({ ...alone, made }, weight, {}, { ...floats, known })
    made[part] = { values: of('int8'), steps: of('steps') }
  }
  return made
}

/** Int8 weights that the model itself stores: its integers in the plan's layout, or its scales. */
function asStored(source: WeightSource, stored: Readonly<Record<string, Int8Tensor>>, layouts: Layouts): DeferredTensor {
  const { name, made, layout, factor = 1 } = source
  const part = (what: keyof Int8Tensor): Weight => {
    const tensors = Object.entries(stored).map(([key, tensor]): [string, Weight] => [key, tensor[what]])
    const tensor = stack(source, Object.fromEntries(tensors))
    if (tensor === undefined) throw new Error(`internal: ${name} is not stored`)
    return tensor
  }
  if (made === 'steps') {
    const steps = part('steps')
    return computedTensor('f32', steps.shape, async function* (signal) {
      const { data } = await inMemory(steps, signal)
      yield bytesOf(decode('f32', data).map((step) => step * factor))
    })
  }
  const values = part('values')
  const [rows = 1, columns = 1] = values.shape
  const wanted = layout === 'row' ? undefined : findLayout(layouts, layout, 2)
  return {
    ...{ dtype: 'i8', shape: values.shape, layout, bytes: quantisedBytes({ name, rows, columns }, wanted) },
    async *pieces(signal) {
      if (wanted === undefined) yield* piecesOf(values, signal)
      else {
        const { data } = await inMemory(values, signal)
        yield bytesOf(intoLayout(wanted, { name, rows, columns }, new Int8Array(data.buffer, data.byteOffset, data.byteLength)))
      }
    },
  }
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Int8Array | Float32Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength)

/** Concatenates tensors along their first axis; undefined for a single tensor that does not exist, which is reported where it is read. */
function stack({ name, parts }: WeightSource, weights: Weights): Weight | undefined {
  const [only, ...more] = parts
  if (more.length === 0) return weights[only ?? '']
  const tensors = parts.map((part) => {
    const tensor = weights[part]
    if (tensor === undefined) throw usageError('program.weight', `stack ${name}: there is no tensor ${part}`)
    return tensor
  })
  const [first] = tensors
  if (first === undefined) throw new Error(`internal: stack ${name} is empty`)
  const describe = ({ dtype, shape }: Weight): string => `${dtype} [${shape.join(', ')}]`
  const rowOf = ({ dtype, shape }: Weight): string => `${dtype} of ${shape.length} [${shape.slice(1).join(', ')}]`
  const other = tensors.find((tensor) => rowOf(tensor) !== rowOf(first))
  if (other !== undefined)
    throw usageError('program.weight', `stack ${name}: its parts are ${describe(first)} and ${describe(other)}`)
  return {
    dtype: first.dtype,
    shape: [tensors.reduce((rows, { shape: [own = 1] }) => rows + own, 0), ...first.shape.slice(1)],
    bytes: tensors.reduce((bytes, tensor) => bytes + weightBytes(tensor), 0),
    async *pieces(signal) {
      for (const tensor of tensors) yield* piecesOf(tensor, signal)
    },
  }
}
