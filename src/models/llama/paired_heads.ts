/**
 * Heads whose channels are turned in pairs (2k, 2k + 1), as the article on rotary embeddings, Meta's files and GGUF files have them (Su et al. 2021), as
 * heads in halves (k, k + e), which programs here turn. Rows that make queries and keys change their order, and so do their biases, steps and
 * norms: both sides of every score change alike, so that scores stay. It costs nothing in a run, and holds under every plan.
 */
import type { Checkpoint } from '../../checkpoint/checkpoint.js'
import type { CheckpointTensor } from '../../checkpoint/convert.js'
import { wholeOf } from '../../runtime/weight.js'
import type { LlamaConfig } from './config.js'
import { rotaryDims } from './rotary_config.js'

/** Heads that a tensor's rows begin with, and the channels of each that are turned, the first ones. */
export interface PairedHeads {
  readonly heads: number
  readonly headDim: number
  readonly turned: number
}

/** A tensor that has row `e + k` of each head behind its row `k`, as one that has all of the first before the second. */
export function inHalves(tensor: CheckpointTensor, paired: PairedHeads): CheckpointTensor {
  const { heads, headDim } = paired
  const [rows = 0] = tensor.shape
  const end = heads * headDim
  // Tensors of another shape than the model's are refused where they are taken.
  if (rows < end || heads === 0) return tensor
  if ('data' in tensor) {
    const head = (tensor.data.byteLength / rows) * headDim
    const parts = Array.from({ length: heads }, (_, i) => reordered(tensor.data.subarray(i * head, (i + 1) * head), paired))
    return { ...tensor, data: Buffer.concat([...parts, tensor.data.subarray(heads * head)]) }
  }
  return {
    ...tensor,
    async *pieces(signal) {
      for (let at = 0; at < end; at += headDim) yield reordered(await wholeOf(tensor.rows(at, at + headDim), signal), paired)
      if (rows > end) yield* tensor.rows(end, rows).pieces(signal)
    },
    rows(from, to) {
      if (from % headDim !== 0 || to % headDim !== 0) throw new Error(`internal: rows ${from} to ${to} are no whole heads`)
      const left = Math.min(Math.max(heads - from / headDim, 0), (to - from) / headDim)
      const part = inHalves(tensor.rows(from, to), { ...paired, heads: left })
      if ('data' in part) throw new Error('internal: rows of a file are in memory')
      return part
    },
  }
}

/** The rows of a head in another order. */
function reordered(head: Uint8Array, { headDim, turned }: PairedHeads): Uint8Array {
  const row = head.byteLength / headDim
  const half = turned / 2
  const halves = head.slice()
  for (let at = 0; at < turned; at++) {
    const from = at < half ? 2 * at : 2 * (at - half) + 1
    halves.set(head.subarray(from * row, (from + 1) * row), at * row)
  }
  return halves
}

/** Rows of queries and keys: their weights as they are stored, biases, and steps of int8. */
const projections = /\.self_attn\.(q|k|qkv)_proj\.(?:weight|bias|weight_scale|weight_packed)$/
const norms = /\.self_attn\.[qk]_norm\.weight$/

/** A checkpoint whose heads are in pairs where the configuration says so, with heads in halves. */
export function withHeadsInHalves(checkpoint: Checkpoint, config: LlamaConfig): Checkpoint {
  if (config.interleaved !== true) return checkpoint
  const { heads, kvHeads, headDim } = config
  const counts: Readonly<Record<string, number>> = { q: heads, k: kvHeads, qkv: heads + kvHeads }
  const turned = rotaryDims(config.rotary, headDim)
  return {
    tensors: new Map(
      [...checkpoint.tensors].map(([name, tensor]) => {
        const kind = projections.exec(name)?.[1]
        const count = kind === undefined ? Number(norms.test(name)) : (counts[kind] ?? 0)
        return [name, inHalves(tensor, { heads: count, headDim, turned })]
      }),
    ),
  }
}
