/**
 * Reorders heads whose channels are rotated in pairs (2k, 2k + 1), as in the article on rotary embeddings (Su et al. 2021), Meta's files and GGUF
 * files, into heads in halves (k, k + e), which the programs here rotate. The weight rows of queries and keys are permuted, and so are their biases,
 * scales and norms. Both factors of every score are permuted identically, so scores stay the same. It costs nothing in a run, and works under every
 * plan.
 */
import type { Checkpoint } from '../../checkpoint/checkpoint.js'
import type { CheckpointTensor } from '../../checkpoint/convert.js'
import { wholeOf } from '../../runtime/weight.js'
import type { LlamaConfig } from './config.js'
import { rotaryDims } from './rotary_config.js'

/** Number of heads at the start of a tensor's rows, channels per head, and the number of leading channels that are rotated. */
export interface PairedHeads {
  readonly heads: number
  readonly headDim: number
  readonly rotated: number
}

/** Reorders a tensor that has row `e + k` of each head after its row `k`, so that the first half's rows come before the second's. */
export function inHalves(tensor: CheckpointTensor, paired: PairedHeads): CheckpointTensor {
  const { heads, headDim } = paired
  const [rows = 0] = tensor.shape
  const end = heads * headDim
  // Tensors whose shape does not match the model are refused when they are taken.
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
      if (from % headDim !== 0 || to % headDim !== 0) throw new Error(`internal: rows ${from} to ${to} are not whole heads`)
      const left = Math.min(Math.max(heads - from / headDim, 0), (to - from) / headDim)
      const part = inHalves(tensor.rows(from, to), { ...paired, heads: left })
      if ('data' in part) throw new Error('internal: rows of a file are in memory')
      return part
    },
  }
}

/** The rows of a head in halves. */
function reordered(head: Uint8Array, { headDim, rotated }: PairedHeads): Uint8Array {
  const row = head.byteLength / headDim
  const half = rotated / 2
  const halves = head.slice()
  for (let at = 0; at < rotated; at++) {
    const from = at < half ? 2 * at : 2 * (at - half) + 1
    halves.set(head.subarray(from * row, (from + 1) * row), at * row)
  }
  return halves
}

/** Tensors with query and key rows: weights as stored, biases, and int8 scales. */
const projections = /\.self_attn\.(q|k|qkv)_proj\.(?:weight|bias|weight_scale|weight_packed)$/
const norms = /\.self_attn\.[qk]_norm\.weight$/

/** A checkpoint with its heads in halves; reordered if the configuration states interleaved pairs. */
export function withHeadsInHalves(checkpoint: Checkpoint, config: LlamaConfig): Checkpoint {
  if (config.interleaved !== true) return checkpoint
  const { heads, kvHeads, headDim } = config
  const counts: Readonly<Record<string, number>> = { q: heads, k: kvHeads, qkv: heads + kvHeads }
  const rotated = rotaryDims(config.rotary, headDim)
  return {
    tensors: new Map(
      [...checkpoint.tensors].map(([name, tensor]) => {
        const kind = projections.exec(name)?.[1]
        const count = kind === undefined ? Number(norms.test(name)) : (counts[kind] ?? 0)
        return [name, inHalves(tensor, { heads: count, headDim, rotated })]
      }),
    ),
  }
}
