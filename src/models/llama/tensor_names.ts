/**
 * Which tensor of a LLaMA-like checkpoint is which weight, and the shape the configuration gives it. Fused tensors (Phi-3 has queries, keys
 * and values in one, and gate and up in another) are read by their rows, so that every model has the same weights.
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
import { type DeferredTensor, type Int8Tensor, inMemory, tensorBytes } from '../../runtime/weight.js'
import { belowEach } from '../parts/weight_names.js'
import type { LlamaConfig } from './config.js'
import { ignoredBy } from './ignored_modules.js'
import { type LlamaQuantization, readSchemes } from './quantization.js'

/** A weight's place in a checkpoint. */
export interface LlamaTensor {
  /** Without the checkpoint's `model.` prefix. */
  readonly name: string
  /** Of the tensor that the checkpoint has. */
  readonly shape: readonly number[]
  /** What the checkpoint may have in its place. */
  readonly otherwise?: string
  readonly hints?: TensorHints
  /** The rows of it that are the weight, from and to; all where undefined. */
  readonly rows?: readonly [number, number]
  /** Where it is int8: the tensor `[rows, 1]` of its steps, by which each row is multiplied. */
  readonly steps?: string
  /** Where four of its integers are one int32: the tensor that holds them. */
  readonly packed?: string
}

export const headName = 'lm_head.weight'
const embeddings = 'embed_tokens.weight'

/** The weights of a model by the programs' names of them. Biases and norms of heads are there where the model has them. */
export function llamaTensors(config: LlamaConfig): Readonly<Record<string, LlamaTensor>> {
  const { vocab, hidden, layers, tied } = config
  // Of two names of one tensor, a file may have kept either.
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
    'tie_word_embeddings of the configuration is false, or left out, which means the same: true says that the embeddings are the head',
}

type Weights = Readonly<Record<string, LlamaTensor>>

/** Of a layer, by the programs' names behind its own. Matrices are `[outputs, inputs]`. */
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

/** Weights that are one tensor in the checkpoint, as its rows, one behind the other. */
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

/** Weights of a layer with the steps that its matrices have where they are int8. */
const quantised = (weights: Weights, { packed, ignore }: LlamaQuantization): Weights =>
  Object.fromEntries(
    Object.entries(weights).map(([weight, tensor]) => {
      const { name, shape } = tensor
      if (shape.length === 1 || ignoredBy(ignore, `model.${name.replace(/\.weight$/, '')}`)) return [weight, tensor]
      return [weight, { ...tensor, steps: `${name}_scale`, ...(packed && { packed: `${name}_packed` }) }]
    }),
  )

/** True if all matrices of the layers are int8, so that a plan which multiplies them in integers rounds none that the model has in floats. */
export const areAllInt8 = (config: LlamaConfig): boolean =>
  Array.from({ length: config.layers }, (_, layer) => Object.values(layerTensors(config, layer)))
    .flat()
    .every(({ shape, steps }) => shape.length === 1 || steps !== undefined)

/** Names a checkpoint may have for a tensor: one of the model without its head has no prefix. */
const namesOf = (name: string): readonly string[] => (name === headName ? [name] : [`model.${name}`, name])

export const embeddingNames: readonly string[] = namesOf(embeddings)

/** A tensor's name in messages: as checkpoints usually have it. */
const usualName = (name: string): string => namesOf(name)[0] ?? name

const find = (file: Checkpoint, name: string, otherwise?: string) =>
  findTensor(file, otherwise === undefined ? namesOf(name) : [...namesOf(name), otherwise])

/**
 * A weight in storage type `dtype`, read when it is uploaded; of a fused tensor its rows alone. An int8 weight is multiplied by its steps:
 * a model of int8 weights runs under every plan, and with float activations more exactly than it was meant to.
 * @throws usage `weights.missing`, `weights.shape`, `weights.dtype` naming the tensor, the shape expected and what was found
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
 * An int8 weight as the checkpoint has it.
 * @throws usage `weights.missing`, `weights.shape`, `weights.dtype`
 */
export function takeLlamaInt8(
  file: Checkpoint,
  { name, shape, rows, steps, packed }: LlamaTensor & { readonly steps: string },
): Record<keyof Int8Tensor, DeferredTensor> {
  const values =
    packed === undefined
      ? takeInt8(find(file, name), usualName(name), shape, rows)
      : takePackedInt8(find(file, packed), usualName(packed), shape, rows)
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

/** Names of all tensors that a weight may be. Beside packed integers there is the shape that they had, which the configuration gives too. */
const storedNames = ({ name, steps = name, packed }: LlamaTensor): readonly string[] =>
  (packed === undefined ? [name, steps] : [packed, steps, `${name}_shape`]).flatMap(namesOf)

/** What old checkpoints hold besides weights: numbers that the configuration gives. */
const computed = /\.rotary_emb\.(inv_freq|cos_cached|sin_cached)$/

/**
 * Holds a checkpoint against a configuration before anything is read: a tensor that nothing reads would be a bias, a norm or a layer
 * that the configuration denies, and the model another one.
 * @throws usage `config.count`, `weights.unknown`
 */
export function checkLlamaTensors(config: LlamaConfig, file: Checkpoint): void {
  expectCount(file, 'num_hidden_layers', config.layers)
  // Files of a tied model may have the embeddings twice.
  const names = new Set([headName, ...Object.values(llamaTensors(config)).flatMap(storedNames)])
  const unknown = [...file.tensors.keys()].filter((name) => !names.has(name) && !computed.test(name))
  const integers = unknown.find((name) => name.endsWith('.qweight'))
  if (integers !== undefined) {
    const what = `tensor ${shown(integers)} holds packed integers, as GPTQ and AWQ write them, which are not read`
    throw usageError('config.quantization', what, { hint: readSchemes })
  }
  const [first] = unknown
  if (first === undefined) return
  const more = unknown.length > 1 ? `, and ${unknown.length - 1} more` : ''
  throw usageError(
    'weights.unknown',
    `tensor ${shown(first)} is no weight of the model that the configuration describes${more}`,
    {
      hint: `a model of type ${config.modelType} with ${config.layers} layers${first.endsWith('.bias') ? `, ${config.qkvBias ? 'with' : 'without'} biases of queries, keys and values` : ''}`,
    },
  )
}
