/**
 * Mapping from weights to tensors of a LLaMA-like checkpoint, and their shapes by the configuration. Fused tensors (Phi-3 has query, key and value
 * weights in one, and gate and up in another) are read by their rows, so that every model has the same weights.
 */

import {
  type Checkpoint,
  expectCount,
  findTensor,
  type TensorHints,
  takeInt8,
  takePackedInt8,
  takeTensor,
  tokenRows,
} from '../../checkpoint/checkpoint.js'
import { convertTensor, type FloatType } from '../../checkpoint/convert.js'
import type { FileTensor } from '../../checkpoint/safetensors.js'
import { shown } from '../../checkpoint/safetensors_header.js'
import { usageError } from '../../errors.js'
import { decode, encode } from '../../runtime/buffer.js'
import { computedTensor, type DeferredTensor, type Int8Tensor, inMemory, tensorBytes } from '../../runtime/weight.js'
import { belowEach } from '../parts/weight_names.js'
import type { LlamaConfig } from './config.js'
import { ignoredBy } from './ignored_modules.js'
import { type LlamaQuantization, readSchemes } from './quantization.js'

/** The checkpoint tensor of a weight. */
export interface LlamaTensor {
  /** Name without the checkpoint's `model.` prefix. */
  readonly name: string
  /** Shape of the whole tensor in the checkpoint. */
  readonly shape: readonly number[]
  /** Name of a tensor that the checkpoint may have instead. */
  readonly otherwise?: string
  readonly hints?: TensorHints
  /** Range of rows that form the weight, from and to; all if undefined. */
  readonly rows?: readonly [number, number]
  /** Tensor `[rows, 1]` of an int8 weight's scales, by which each row is multiplied; `[1]` if it has one for all rows. */
  readonly steps?: string
  /** True if all rows of the tensor have one scale. */
  readonly perTensor?: boolean
  /** Tensor `[1]` with the scale of the weight's inputs. It is not read. */
  readonly inputScale?: string
  /** Tensor of integers that are packed four to an int32. */
  readonly packed?: string
}

export const headName = 'lm_head.weight'
const embeddings = 'embed_tokens.weight'

/** Tensors of a model by the programs' weight names. Biases and head norms are included if the model has them. */
export function llamaTensors(config: LlamaConfig): Readonly<Record<string, LlamaTensor>> {
  const { vocab, hidden, layers, tied } = config
  // A file may store a tied tensor under either of its two names.
  const words = { name: embeddings, shape: [vocab, hidden], hints: tokenRows, ...(tied && { otherwise: headName }) }
  return {
    'embeddings.words': words,
    'head.gamma': { name: 'norm.weight', shape: [hidden] },
    'head.weight': tied ? words : { name: headName, shape: [vocab, hidden], hints: headHints },
    ...Object.fromEntries(belowEach('layer', layers, (layer) => layerTensors(config, layer))),
  }
}

const headHints: TensorHints = {
  ...tokenRows,
  missing:
    'tie_word_embeddings of the configuration is false or missing, which means false: set it to true if the embeddings are the head',
}

type Weights = Readonly<Record<string, LlamaTensor>>

/** Tensors of a layer by the programs' weight names, without the layer's prefix. Matrices are `[outputs, inputs]`. */
export function layerTensors(config: LlamaConfig, layer: number): Weights {
  const at = `layers.${layer}`
  const { hidden, heads, kvHeads, headDim, inner } = config
  const of = (name: string, ...shape: readonly number[]): LlamaTensor => ({ name: `${at}.${name}`, shape })
  const wide = heads * headDim
  const narrow = kvHeads * headDim
  const qkv = {
    queryWeight: of('self_attn.q_proj.weight', wide, hidden),
    keyWeight: of('self_attn.k_proj.weight', narrow, hidden),
    valueWeight: of('self_attn.v_proj.weight', narrow, hidden),
  }
  const gateUp = { gateWeight: of('mlp.gate_proj.weight', inner, hidden), upWeight: of('mlp.up_proj.weight', inner, hidden) }
  const weights = {
    attentionGamma: of('input_layernorm.weight', hidden),
    ...(config.fusedRows ? rowsOf(`${at}.self_attn.qkv_proj.weight`, qkv) : qkv),
    ...(config.fusedRows ? rowsOf(`${at}.mlp.gate_up_proj.weight`, gateUp) : gateUp),
    projectionWeight: of('self_attn.o_proj.weight', hidden, wide),
    innerGamma: of('post_attention_layernorm.weight', hidden),
    downWeight: of('mlp.down_proj.weight', hidden, inner),
    ...(config.qkvBias && {
      queryBias: of('self_attn.q_proj.bias', wide),
      keyBias: of('self_attn.k_proj.bias', narrow),
      valueBias: of('self_attn.v_proj.bias', narrow),
    }),
    ...(config.outputBias && { projectionBias: of('self_attn.o_proj.bias', hidden) }),
    ...(config.qkNorm && {
      queryGamma: of('self_attn.q_norm.weight', headDim),
      keyGamma: of('self_attn.k_norm.weight', headDim),
    }),
  }
  return config.quantization === undefined ? weights : quantised(weights, config.quantization)
}

/** Weights that are concatenated rows of one tensor in the checkpoint. */
function rowsOf(name: string, weights: Weights): Weights {
  const all = Object.entries(weights)
  const rowsBefore = (at: number): number => all.slice(0, at).reduce((sum, [, { shape }]) => sum + (shape[0] ?? 0), 0)
  return Object.fromEntries(
    all.map(([weight, { shape }], at) => [
      weight,
      { name, shape: [rowsBefore(all.length), ...shape.slice(1)], rows: [rowsBefore(at), rowsBefore(at + 1)] },
    ]),
  )
}

/** Weights of a layer, with the scales of its int8 matrices. */
const quantised = (weights: Weights, { packed, perTensor, inputScales, ignore }: LlamaQuantization): Weights =>
  Object.fromEntries(
    Object.entries(weights).map(([weight, tensor]) => {
      const { name, shape } = tensor
      if (shape.length === 1 || ignoredBy(ignore, `model.${name.replace(/\.weight$/, '')}`)) return [weight, tensor]
      const more = {
        ...(packed && { packed: `${name}_packed` }),
        ...(perTensor && { perTensor }),
        ...(inputScales && { inputScale: name.replace(/\.weight$/, '.input_scale') }),
      }
      return [weight, { ...tensor, steps: `${name}_scale`, ...more }]
    }),
  )

/** True if all matrices of the layers are int8, so that a plan with integer matmuls rounds no float weight. */
export const areAllInt8 = (config: LlamaConfig): boolean =>
  Array.from({ length: config.layers }, (_, layer) => Object.values(layerTensors(config, layer)))
    .flat()
    .every(({ shape, steps }) => shape.length === 1 || steps !== undefined)

/** Names that a checkpoint may use for a tensor: checkpoints without the head have no prefix. */
const namesOf = (name: string): readonly string[] => (name === headName ? [name] : [`model.${name}`, name])

export const embeddingNames: readonly string[] = namesOf(embeddings)

/** Name of a tensor in messages: the one that most checkpoints use. */
const usualName = (name: string): string => namesOf(name)[0] ?? name

const find = (file: Checkpoint, name: string, otherwise?: string) =>
  findTensor(file, otherwise === undefined ? namesOf(name) : [...namesOf(name), otherwise])

/**
 * A weight in storage type `dtype`, read when it is uploaded; of a fused tensor, only its own rows. An int8 weight is multiplied by its
 * scales, so a model with int8 weights runs under every plan, with float activations more exactly than it was made for.
 * @throws usage `weights.missing`, `weights.shape`, `weights.dtype` naming the tensor, the expected and the found value
 */
export function takeLlamaTensor(file: Checkpoint, tensor: LlamaTensor, dtype: FloatType): DeferredTensor {
  const { name, otherwise, shape, rows, hints } = tensor
  if (tensor.steps !== undefined) {
    const { values, steps } = takeLlamaInt8(file, { ...tensor, steps: tensor.steps })
    return convertTensor(usualName(name), multiplied(values, steps), dtype)
  }
  return takeTensor(find(file, name, otherwise), usualName(name), shape, dtype, { rows, hints })
}

/**
 * An int8 weight as stored in the checkpoint.
 * @throws usage `weights.missing`, `weights.shape`, `weights.dtype`
 */
export function takeLlamaInt8(
  file: Checkpoint,
  { name, shape, rows, steps, packed, perTensor }: LlamaTensor & { readonly steps: string },
): Record<keyof Int8Tensor, DeferredTensor> {
  const values =
    packed === undefined
      ? takeInt8(find(file, name), usualName(name), shape, rows)
      : takePackedInt8(find(file, packed), usualName(packed), shape, rows)
  const [count = 0] = shape
  const ofRows = values.shape[0] ?? 0
  if (perTensor === true) {
    const one = takeTensor(find(file, steps), usualName(steps), [1], 'f32')
    return { values, steps: repeated(one, ofRows) }
  }
  const taken = takeTensor(find(file, steps), usualName(steps), [count, 1], 'f32', { rows })
  return { values, steps: { ...taken, shape: [ofRows] } }
}

/** One number as the scale of every row. */
const repeated = (one: DeferredTensor, rows: number): DeferredTensor =>
  computedTensor('f32', [rows], async function* (signal) {
    const [scale = 0] = decode('f32', (await inMemory(one, signal)).data)
    yield encode('f32', new Float32Array(rows).fill(scale))
  })

/** Dequantises int8 rows: the floats of each row times its scale. */
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

/**
 * Names of all tensors of a weight. Packed integers have an additional tensor with their unpacked shape, which also follows from the configuration.
 */
const storedNames = ({ name, steps = name, packed, inputScale = name }: LlamaTensor): readonly string[] =>
  (packed === undefined ? [name, steps, inputScale] : [packed, steps, `${name}_shape`]).flatMap(namesOf)

/** Tensors in old checkpoints that are computed from the configuration. */
const computed = /\.rotary_emb\.(inv_freq|cos_cached|sin_cached)$/

/**
 * Checks a checkpoint's tensors against the configuration before anything is read. An unused tensor would be a bias, a norm or a layer
 * that the configuration does not have, so the model would be a different one.
 * @throws usage `config.count`, `weights.unknown`
 */
export function checkLlamaTensors(config: LlamaConfig, file: Checkpoint): void {
  expectCount(file, 'num_hidden_layers', config.layers)
  // Files of a tied model may store the embeddings twice.
  const names = new Set([headName, ...Object.values(llamaTensors(config)).flatMap(storedNames)])
  const unknown = [...file.tensors.keys()].filter((name) => !names.has(name) && !computed.test(name))
  const integers = unknown.find((name) => name.endsWith('.qweight'))
  if (integers !== undefined) {
    const what = `tensor ${shown(integers)} holds packed integers, as written by GPTQ and AWQ, which are not supported`
    throw usageError('config.quantization', what, { hint: readSchemes })
  }
  const maximum = unknown.find((name) => name.endsWith('_quantizer._amax'))
  if (maximum !== undefined) {
    const what = `tensor ${shown(maximum)} is the state of a quantiser in training, as in ModelOpt's own checkpoints`
    throw usageError('config.quantization', what, { hint: `export the model with its integers; ${readSchemes}` })
  }
  const [first] = unknown
  if (first === undefined) return
  const more = unknown.length > 1 ? `, and ${unknown.length - 1} more` : ''
  throw usageError(
    'weights.unknown',
    `tensor ${shown(first)} is not a weight of the model that the configuration describes${more}`,
    {
      hint: `a model of type ${config.modelType} with ${config.layers} layers${first.endsWith('.bias') ? `, ${config.qkvBias ? 'with' : 'without'} biases of queries, keys and values` : ''}`,
    },
  )
}
