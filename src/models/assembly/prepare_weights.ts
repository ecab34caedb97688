/** The weights that applications read, made in host memory before they are uploaded: stacked where a plan stacks, int8 where it quantises. */
import { usageError } from '../../errors.js'
import { type QuantisedWeights, quantiseWeights } from '../../quant/weights.js'
import { decode } from '../../runtime/buffer.js'
import { findLayout, type Layouts } from '../../runtime/layouts.js'
import type { GraphApplication } from '../../runtime/program.js'
import type { WeightTensor } from '../../runtime/session.js'
import { type WeightSource, weightSources } from '../../runtime/weight_tensors.js'

type Tensors = Readonly<Record<string, WeightTensor>>

/**
 * The weights the applications read, and nothing that none of them reads. `exact` holds the model's weights in float32: int8 ones
 * are made from these, so that they are rounded once.
 * @throws usage `program.weight` for a part that does not exist or differs in type or shape from the others, `quant.*`
 */
export function prepareWeights(
  applications: readonly GraphApplication[],
  weights: Tensors,
  layouts: Layouts = {},
  exact: Tensors = weights,
): Record<string, WeightTensor> {
  const made: Record<string, WeightTensor> = {}
  const quantised = new Map<string, QuantisedWeights>()
  for (const source of applications.flatMap(weightSources)) {
    if (made[source.name] !== undefined) continue
    const tensor = stack(source, source.made === undefined ? weights : exact)
    if (tensor === undefined) continue
    made[source.name] = source.made === undefined ? tensor : int8(source, tensor, layouts, quantised)
  }
  return made
}

function int8(
  { name, parts, made, layout, factor = 1 }: WeightSource,
  tensor: WeightTensor,
  layouts: Layouts,
  known: Map<string, QuantisedWeights>,
): WeightTensor {
  if (tensor.dtype !== 'f32') throw new Error(`internal: ${name} is made from ${tensor.dtype}`)
  const [rows = 1, ...rest] = tensor.shape
  const columns = rest.reduce((product, extent) => product * extent, 1)
  const key = parts.join('+')
  const result =
    (made === 'steps' ? known.get(key) : undefined) ??
    quantiseWeights(
      { name: key, values: decode('f32', tensor.data), rows, columns },
      layout === 'row' ? undefined : findLayout(layouts, layout, 2),
    )
  known.set(key, result)
  if (made === 'steps') {
    // A product of float32 numbers, rounded once, as the kernel would compute it.
    const steps = result.scales.map((step) => step * factor)
    return { dtype: 'f32', shape: [rows], data: bytesOf(steps) }
  }
  return { dtype: 'i8', shape: tensor.shape, layout, data: bytesOf(result.values) }
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Int8Array | Float32Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength)

/** Concatenates tensors along their first axis; undefined for one tensor that does not exist, which is reported where it is read. */
function stack({ name, parts }: WeightSource, weights: Tensors): WeightTensor | undefined {
  const [only, ...more] = parts
  if (more.length === 0) return weights[only ?? '']
  const tensors = parts.map((part) => {
    const tensor = weights[part]
    if (tensor === undefined) throw usageError('program.weight', `stack ${name}: there is no tensor ${part}`)
    return tensor
  })
  const [first] = tensors
  if (first === undefined) throw new Error(`internal: stack ${name} is empty`)
  const describe = ({ dtype, shape }: WeightTensor): string => `${dtype} [${shape.join(', ')}]`
  const other = tensors.find((tensor) => describe(tensor) !== describe(first))
  if (other !== undefined)
    throw usageError('program.weight', `stack ${name}: its parts are ${describe(first)} and ${describe(other)}`)
  const data = new Uint8Array(tensors.reduce((bytes, tensor) => bytes + tensor.data.byteLength, 0))
  let at = 0
  for (const tensor of tensors) {
    data.set(tensor.data, at)
    at += tensor.data.byteLength
  }
  const [rows = 1, ...rest] = first.shape
  return { dtype: first.dtype, shape: [rows * tensors.length, ...rest], data }
}
