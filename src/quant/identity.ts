/**
 * Identity of the model that scales belong to. Sizes alone do not distinguish a fine-tuned model from its origin, and reading every weight
 * takes longer than it is worth. The digest covers the name and shape of every tensor and a sample of its values.
 */
import { createHash } from 'node:crypto'
import { dtypeInfo } from '../ir/dtype.js'
import { decode, encode } from '../runtime/buffer.js'
import type { WeightTensor } from '../runtime/session.js'
import { inMemory, type Weight } from '../runtime/weight.js'

export interface ModelSizes {
  readonly layers: number
  readonly hidden: number
  readonly heads: number
  readonly inner: number
  /** Set for pre-norm layers, whose output is not the result of a norm. */
  readonly norms?: 'pre' | undefined
}

export interface ModelIdentity extends ModelSizes {
  /** SHA-256 in hexadecimal. */
  readonly digest: string
}

/** Number of sampled values per tensor, evenly spaced. Training changes all of them. */
const sampled = 64

/**
 * Computes the identity of a model from the weights that its activations depend on. Values are hashed as float32 or widened to it, so pass
 * weights as stored in the checkpoint: rounded to another storage type they identify a different model.
 */
export async function modelIdentity(
  { layers, hidden, heads, inner, norms }: ModelSizes,
  weights: Readonly<Record<string, Weight>>,
  signal?: AbortSignal,
): Promise<ModelIdentity> {
  const hash = createHash('sha256')
  for (const name of Object.keys(weights).sort()) {
    const weight = weights[name]
    if (weight === undefined) continue
    const tensor = await inMemory(weight, signal)
    hash.update(`${name} ${tensor.shape.join('x')}\n`)
    hash.update(encode('f32', sample(tensor)))
  }
  const form = norms === undefined ? {} : { norms }
  return { layers, hidden, heads, inner, ...form, digest: hash.digest('hex') }
}

function sample({ dtype, data }: WeightTensor): Float32Array {
  const { bytes } = dtypeInfo[dtype]
  const length = data.byteLength / bytes
  return Float32Array.from({ length: Math.min(sampled, length) }, (_, i) => {
    const at = Math.floor((i * length) / Math.min(sampled, length)) * bytes
    return decode(dtype, data.slice(at, at + bytes))[0] ?? 0
  })
}
