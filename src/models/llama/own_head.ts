/**
 * Tied models whose checkpoint has a head nevertheless. A head equal to the embeddings is a copy of them. A different one was trained
 * separately, and Hugging Face (transformers 5) computes logits with it regardless of the configuration. Checked when a model is opened.
 */
import { type Checkpoint, findTensor } from '../../checkpoint/checkpoint.js'
import type { CheckpointTensor } from '../../checkpoint/convert.js'
import type { LlamaConfig } from './config.js'
import { embeddingNames, headName } from './tensor_names.js'

/** The configuration corrected by the checkpoint: not tied if it has its own head. */
export async function withOwnHead(config: LlamaConfig, file: Checkpoint, signal?: AbortSignal): Promise<LlamaConfig> {
  const [, words] = findTensor(file, embeddingNames) ?? []
  const head = file.tensors.get(headName)
  if (!config.tied || words === undefined || head === undefined) return config
  return (await areEqual(words, head, signal)) ? config : { ...config, tied: false }
}

async function areEqual(a: CheckpointTensor, b: CheckpointTensor, signal: AbortSignal | undefined): Promise<boolean> {
  if (a.dtype !== b.dtype || a.shape.join() !== b.shape.join()) return false
  const others = piecesOf(b, signal)
  // Tensors of equal size are read in pieces of equal size.
  try {
    for await (const piece of piecesOf(a, signal)) {
      const { value } = await others.next()
      if (value === undefined || Buffer.compare(piece, value) !== 0) return false
    }
    return true
  } finally {
    await others.return(undefined)
  }
}

async function* piecesOf(tensor: CheckpointTensor, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array, undefined> {
  if ('data' in tensor) yield tensor.data
  else yield* tensor.pieces(signal)
  return undefined
}
