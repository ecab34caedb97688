/**
 * Which tensor of a LLaMA-like checkpoint is which weight, and the shape the configuration gives it. Fused tensors (Phi-3 has queries, keys
 * and values in one, and gate and up in another) are read by their rows, so that every model has the same weights.
 */

import { type Checkpoint, expectCount, findTensor, takeInt8, takeTensor } from '../../checkpoint/checkpoint.js'
import { convertTensor, type FloatType } from '../../checkpoint/convert.js'
import type { FileTensor } from '../../checkpoint/safetensors.js'
import { shown } from '../../checkpoint/safetensors_header.js'
import { usageError } from '../../errors.js'
import { decode, encode } from '../../runtime/buffer.js'
import { tensorBytes } from '../../runtime/session.js'
import { type DeferredTensor, type Int8Tensor, inMemory } from '../../runtime/weight.js'
import type { LlamaConfig } from './config.js'

/** A weight's place in a checkpoint. */
export interface LlamaTensor {
  /** Without the checkpoint's `model.` prefix. */
  readonly name: string
  /** Of the tensor that the checkpoint has. */
  readonly shape: readonly number[]
  /** The rows of it that are the weight, from and to; all where undefined. */
  readonly rows?: readonly [number, number]
  /** Where it is int8: the tensor `[rows, 1]` of its steps, by which each row is multiplied. */
  readonly steps?: string
}

/** Weights of a layer. Matrices are `[outputs, inputs]`; biases and norms of heads are there where the model has them. */
export interface LlamaLayerTensors {
  /** `[hidden]`, in front of the attention. */
  readonly attentionNorm: LlamaTensor
  /** `[heads x headDim, hidden]` */
  readonly query: LlamaTensor
  /** `[kvHeads x headDim, hidden]` */
  readonly key: LlamaTensor
  readonly value: LlamaTensor
  /** `[hidden, heads x headDim]` */
  readonly output: LlamaTensor
  /** `[hidden]`, in front of the inner network. */
  readonly innerNorm: LlamaTensor
  /** `[inner, hidden]` */
  readonly gate: LlamaTensor
  readonly up: LlamaTensor
  /** `[hidden, inner]` */
  readonly down: LlamaTensor
  readonly queryBias?: LlamaTensor
  readonly keyBias?: LlamaTensor
  readonly valueBias?: LlamaTensor
  readonly outputBias?: LlamaTensor
  /** `[headDim]`, of every head of queries. */
  readonly queryNorm?: LlamaTensor
  readonly keyNorm?: LlamaTensor
}

export interface LlamaTensors {
  /** `[vocab, hidden]` */
  readonly embedding: LlamaTensor
  readonly layers: readonly LlamaLayerTensors[]
  /** `[hidden]`, behind the last layer. */
  readonly norm: LlamaTensor
  /** `[vocab, hidden]`, the same as `embedding` where the model is tied. */
  readonly head: LlamaTensor
}

const head = 'lm_head.weight'

/** The weights of a model by what they are. */
export function llamaTensors(config: LlamaConfig): LlamaTensors {
  const { vocab, hidden, tied } = config
  const layer = (index: number): LlamaLayerTensors => {
    const tensors = layerTensors(config, `layers.${index}`)
    return config.quantization === undefined ? tensors : { ...tensors, ...quantised(tensors) }
  }
  const embedding = { name: 'embed_tokens.weight', shape: [vocab, hidden] }
  return {
    embedding,
    layers: Array.from({ length: config.layers }, (_, index) => layer(index)),
    norm: { name: 'norm.weight', shape: [hidden] },
    head: tied ? embedding : { name: head, shape: [vocab, hidden] },
  }
}

function layerTensors(config: LlamaConfig, at: string): LlamaLayerTensors {
  const { hidden, heads, kvHeads, headDim, inner, qkvBias, outputBias, qkNorm } = config
  const attention = `${at}.self_attn`
  const wide = heads * headDim
  const narrow = kvHeads * headDim
  return {
    attentionNorm: { name: `${at}.input_layernorm.weight`, shape: [hidden] },
    ...(config.fusedRows ? fused(config, at) : separate(config, at)),
    output: { name: `${attention}.o_proj.weight`, shape: [hidden, wide] },
    innerNorm: { name: `${at}.post_attention_layernorm.weight`, shape: [hidden] },
    down: { name: `${at}.mlp.down_proj.weight`, shape: [hidden, inner] },
    ...(qkvBias && {
      queryBias: { name: `${attention}.q_proj.bias`, shape: [wide] },
      keyBias: { name: `${attention}.k_proj.bias`, shape: [narrow] },
      valueBias: { name: `${attention}.v_proj.bias`, shape: [narrow] },
    }),
    ...(outputBias && { outputBias: { name: `${attention}.o_proj.bias`, shape: [hidden] } }),
    ...(qkNorm && {
      queryNorm: { name: `${attention}.q_norm.weight`, shape: [headDim] },
      keyNorm: { name: `${attention}.k_norm.weight`, shape: [headDim] },
    }),
  }
}

const products = ['query', 'key', 'value', 'output', 'gate', 'up', 'down'] as const

/** The products of a layer with the steps that their int8 weights have. */
const quantised = (layer: LlamaLayerTensors): Partial<LlamaLayerTensors> =>
  Object.fromEntries(products.map((what) => [what, { ...layer[what], steps: `${layer[what].name}_scale` }]))

type Products = Pick<LlamaLayerTensors, 'query' | 'key' | 'value' | 'gate' | 'up'>

const separate = ({ hidden, heads, kvHeads, headDim, inner }: LlamaConfig, at: string): Products => ({
  query: { name: `${at}.self_attn.q_proj.weight`, shape: [heads * headDim, hidden] },
  key: { name: `${at}.self_attn.k_proj.weight`, shape: [kvHeads * headDim, hidden] },
  value: { name: `${at}.self_attn.v_proj.weight`, shape: [kvHeads * headDim, hidden] },
  gate: { name: `${at}.mlp.gate_proj.weight`, shape: [inner, hidden] },
  up: { name: `${at}.mlp.up_proj.weight`, shape: [inner, hidden] },
})

function fused({ hidden, heads, kvHeads, headDim, inner }: LlamaConfig, at: string): Products {
  const keys = heads * headDim
  const values = keys + kvHeads * headDim
  const end = values + kvHeads * headDim
  const qkv = { name: `${at}.self_attn.qkv_proj.weight`, shape: [end, hidden] }
  const gateUp = { name: `${at}.mlp.gate_up_proj.weight`, shape: [2 * inner, hidden] }
  return {
    query: { ...qkv, rows: [0, keys] },
    key: { ...qkv, rows: [keys, values] },
    value: { ...qkv, rows: [values, end] },
    gate: { ...gateUp, rows: [0, inner] },
    up: { ...gateUp, rows: [inner, 2 * inner] },
  }
}

/** Names a checkpoint may have for a tensor: one of the model without its head has no prefix. */
const namesOf = (name: string): readonly string[] => (name === head ? [name] : [`model.${name}`, name])

/** A tensor's name in messages: as checkpoints usually have it. */
const usualName = (name: string): string => namesOf(name)[0] ?? name

const find = (file: Checkpoint, name: string) => findTensor(file, namesOf(name))

/**
 * A weight in storage type `dtype`, read when it is uploaded; of a fused tensor its rows alone. An int8 weight is multiplied by its steps:
 * a model of int8 weights runs under every plan, and with float activations more exactly than it was meant to.
 * @throws usage `weights.missing`, `weights.shape`, `weights.dtype` naming the tensor, the shape expected and what was found
 */
export function takeLlamaTensor(file: Checkpoint, tensor: LlamaTensor, dtype: FloatType): DeferredTensor {
  const { name, shape, rows } = tensor
  if (tensor.steps !== undefined) {
    const { values, steps } = takeLlamaInt8(file, { ...tensor, steps: tensor.steps })
    return convertTensor(usualName(name), multiplied(values, steps), dtype)
  }
  return takeTensor(find(file, name), usualName(name), shape, dtype, { rows })
}

/**
 * An int8 weight as the checkpoint has it.
 * @throws usage `weights.missing`, `weights.shape`, `weights.dtype`
 */
export function takeLlamaInt8(
  file: Checkpoint,
  { name, shape, rows, steps }: LlamaTensor & { readonly steps: string },
): Record<keyof Int8Tensor, DeferredTensor> {
  const values = takeInt8(find(file, name), usualName(name), shape, rows)
  const [count = 0] = shape
  const taken = takeTensor(find(file, steps), usualName(steps), [count, 1], 'f32', { rows })
  return { values, steps: { ...taken, shape: [values.shape[0] ?? 0] } }
}

/** The floats that int8 rows times their steps are. */
function multiplied(values: DeferredTensor, steps: DeferredTensor): FileTensor {
  const { shape } = values
  const columns = shape[1] ?? 1
  return {
    ...{ dtype: 'F32', shape, bytes: tensorBytes('f32', shape) },
    async *pieces(signal) {
      const scale = decode('f32', (await inMemory(steps, signal)).data)
      let first = 0
      for await (const piece of values.pieces(signal)) {
        const integers = new Int8Array(piece.buffer, piece.byteOffset, piece.byteLength)
        const floats = new Float32Array(integers.length)
        for (let i = 0; i < floats.length; i++) floats[i] = (integers[i] ?? 0) * (scale[Math.floor((first + i) / columns)] ?? 0)
        first += floats.length
        yield encode('f32', floats)
      }
    },
    rows: () => {
      throw new Error('internal: rows of int8 weights are taken before they are multiplied')
    },
  }
}

/** What old checkpoints hold besides weights: numbers that the configuration gives. */
const computed = /\.rotary_emb\.(inv_freq|cos_cached|sin_cached)$/

/**
 * Holds a checkpoint against a configuration before anything is read: a tensor that nothing reads would be a bias, a norm or a layer
 * that the configuration denies, and the model another one.
 * @throws usage `config.count`, `weights.unknown`
 */
export function checkLlamaTensors(config: LlamaConfig, file: Checkpoint): void {
  expectCount(file, 'num_hidden_layers', config.layers)
  const { embedding, layers, norm, head: own } = llamaTensors(config)
  const known = [embedding, norm, own, ...layers.flatMap((layer): LlamaTensor[] => Object.values(layer))]
  // Files of a tied model may have the embeddings twice.
  const names = new Set([
    head,
    ...known.flatMap(({ name, steps }) => [...namesOf(name), ...(steps === undefined ? [] : namesOf(steps))]),
  ])
  const unknown = [...file.tensors.keys()].filter((name) => !names.has(name) && !computed.test(name))
  const [first] = unknown
  if (first === undefined) return
  const more = unknown.length > 1 ? `, and ${unknown.length - 1} more` : ''
  throw usageError(
    'weights.unknown',
    `tensor ${shown(first)} is no weight of the model that the configuration describes${more}`,
    {
      hint: `a model of type ${config.modelType} with ${config.layers} layers, ${config.qkvBias ? 'with' : 'without'} biases of queries, keys and values`,
    },
  )
}
