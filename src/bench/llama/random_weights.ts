/**
 * Random weights of LLaMA-like models, of any size in little host memory: a pool of numbers is drawn once, and every tensor repeats it from
 * its own offset. They have the spread of trained weights, so that activations are neither zeros nor too large for their type, and matmuls
 * draw the power of real ones. Times depend on nothing else.
 */

import type { Checkpoint } from '../../checkpoint/checkpoint.js'
import type { FloatType } from '../../checkpoint/convert.js'
import type { FileTensor } from '../../checkpoint/safetensors.js'
import { dtypeInfo } from '../../ir/dtype.js'
import type { LlamaConfig } from '../../models/llama/config.js'
import { llamaTensors } from '../../models/llama/tensor_names.js'
import type { GraphApplication } from '../../runtime/application.js'
import { encode } from '../../runtime/buffer.js'
import { type DeferredTensor, tensorBytes, type Weight } from '../../runtime/weight.js'
import { weightSources } from '../../runtime/weight_tensors.js'
import { normal, random } from '../../verify/random.js'

/** Numbers of a pool: twice a prime, so that rows of one matrix do not repeat each other. */
const drawn = 2_097_142
const drawnVectors = 65_522
/** HF's initial spread of matrices, and that of norms around 1. */
const spread = 0.02
/** Spread of int8 weights for that spread. */
const int8Spread = 40
const largest = 127
/** Tensors begin at multiples of this offset in their pool, so that pieces stay aligned. */
const alignment = 64

const stored = { f32: 'F32', f16: 'F16', bf16: 'BF16' } as const

/** Bytes of a tensor, from an offset in a pool, which repeats. */
function* cut(pool: Uint8Array, from: number, bytes: number): Generator<Uint8Array, void> {
  let at = from % pool.byteLength
  for (let left = bytes; left > 0; ) {
    const piece = pool.subarray(at, Math.min(at + left, pool.byteLength))
    yield piece
    left -= piece.byteLength
    at = 0
  }
}

/** Offset of a tensor in its pool: consecutive tensors begin far apart. */
const placeOf = (number: number, { byteLength }: Uint8Array): number =>
  Math.floor((((number * 0.618_033_988_749) % 1) * byteLength) / alignment) * alignment

/**
 * Checkpoint with all tensors of a configuration, stored in `dtype`. Tensors of one shape have different values.
 */
export function randomCheckpoint(config: LlamaConfig, dtype: FloatType): Checkpoint {
  const next = random('weights of a LLaMA')
  const pool = (count: number, centre: number): Uint8Array =>
    encode(
      dtype,
      Float32Array.from({ length: count }, () => centre + spread * normal(next)),
    )
  const [matrices, vectors] = [pool(drawn, 0), pool(drawnVectors, 1)]
  const tensorOf = (shape: readonly number[], first: number): FileTensor => {
    const source = shape.length === 1 ? vectors : matrices
    const [, ...rest] = shape
    const row = tensorBytes(dtype, rest)
    return {
      ...{ dtype: stored[dtype], shape, bytes: tensorBytes(dtype, shape) },
      async *pieces() {
        yield* cut(source, first, tensorBytes(dtype, shape))
      },
      rows: (from, to) => tensorOf([to - from, ...rest], first + from * row),
    }
  }
  const all = Object.values(llamaTensors({ ...config, quantization: undefined }))
  const shapes = new Map(all.map(({ name, shape }) => [name, shape]))
  return {
    tensors: new Map(
      [...shapes].map(([name, shape], number): [string, FileTensor] => [
        name,
        tensorOf(shape, placeOf(number, shape.length === 1 ? vectors : matrices)),
      ]),
    ),
  }
}

/**
 * Random int8 weights and scales, drawn directly: rounding billions of numbers on the host takes minutes. Weights that are not in row
 * layout are omitted.
 * @param made weights of the applications, whose shapes are used
 */
export function randomInt8(
  applications: readonly GraphApplication[],
  made: Readonly<Record<string, Weight>>,
): Record<string, DeferredTensor> {
  const next = random('int8 weights of a LLaMA')
  const limited = (value: number): number => Math.max(-largest, Math.min(largest, Math.round(value)))
  const integers = encode(
    'i8',
    Int8Array.from({ length: drawn }, () => limited(int8Spread * normal(next))),
  )
  const scales = encode(
    'f32',
    Float32Array.from({ length: drawnVectors }, () => (spread / int8Spread) * (1 + normal(next) / 10)),
  )
  const tensors: Record<string, DeferredTensor> = {}
  for (const [number, { name, made: kind, layout }] of applications.flatMap(weightSources).entries()) {
    const weight = made[name]
    if (kind === undefined || layout !== 'row' || weight === undefined || tensors[name] !== undefined) continue
    const { dtype, shape } = weight
    const [pool, bytes] = [kind === 'int8' ? integers : scales, tensorBytes(dtype, shape)]
    const first = placeOf(number, pool) - (placeOf(number, pool) % dtypeInfo[dtype].bytes)
    tensors[name] = {
      ...{ dtype, shape, layout, bytes },
      async *pieces() {
        yield* cut(pool, first, bytes)
      },
    }
  }
  return tensors
}
