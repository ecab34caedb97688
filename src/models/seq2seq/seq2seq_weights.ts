/**
 * Weights of encoder-decoder models, Pegasus and Marian: which tensor of a checkpoint is which weight of the graphs, their shapes, and
 * what a checkpoint may leave out. Names are without the checkpoint's `model.` prefix.
 */
import { decode, encode } from '../../runtime/buffer.js'
import type { WeightTensor } from '../../runtime/session.js'
import { findTensor, takeTensor } from '../files/checkpoint.js'
import type { FloatType } from '../files/convert.js'
import type { Safetensors } from '../files/safetensors.js'
import type { Seq2seqConfig } from './seq2seq_config.js'

type Side = 'encoder' | 'decoder'
type Shapes = Readonly<Record<string, readonly number[]>>

const shared = 'shared.weight'
const ownHead = 'lm_head.weight'
const logitsBias = 'final_logits_bias'
const positionsOf = (side: Side): string => `${side}.embed_positions.weight`

/** What a stack embeds tokens with. */
export const seq2seqEmbeddings = (side: Side) => ({ words: shared, positions: positionsOf(side) })

/** The norm behind a stack of pre-LN layers. */
export const seq2seqFinalNorm = (side: Side) => ({
  gamma: `${side}.layer_norm.weight`,
  beta: `${side}.layer_norm.bias`,
})

/** The logits' weight and, where the checkpoint has one, their bias. */
export const seq2seqHead = ({ tied }: Seq2seqConfig) => ({ weight: tied ? shared : ownHead, bias: logitsBias })

/** Whether the logits of a model have a bias, by its weights. */
export const hasLogitsBias = (weights: Readonly<Record<string, WeightTensor>>): boolean => Object.hasOwn(weights, logitsBias)

/** Self-attention, inner network and their norms. */
const layerNames = (side: Side, layer: number) => {
  const at = `${side}.layers.${layer}`
  return {
    queryWeight: `${at}.self_attn.q_proj.weight`,
    queryBias: `${at}.self_attn.q_proj.bias`,
    keyWeight: `${at}.self_attn.k_proj.weight`,
    keyBias: `${at}.self_attn.k_proj.bias`,
    valueWeight: `${at}.self_attn.v_proj.weight`,
    valueBias: `${at}.self_attn.v_proj.bias`,
    projectionWeight: `${at}.self_attn.out_proj.weight`,
    projectionBias: `${at}.self_attn.out_proj.bias`,
    attentionGamma: `${at}.self_attn_layer_norm.weight`,
    attentionBeta: `${at}.self_attn_layer_norm.bias`,
    fc1Weight: `${at}.fc1.weight`,
    fc1Bias: `${at}.fc1.bias`,
    fc2Weight: `${at}.fc2.weight`,
    fc2Bias: `${at}.fc2.bias`,
    outputGamma: `${at}.final_layer_norm.weight`,
    outputBeta: `${at}.final_layer_norm.bias`,
  }
}

/** Weights of an encoder layer, for its graph. */
export const encoderLayerNames = (layer: number) => layerNames('encoder', layer)

/** Weights of a decoder layer, for its graph; keys and values of the memory are computed elsewhere. */
export const decoderLayerNames = (layer: number) => {
  const at = `decoder.layers.${layer}`
  return {
    ...layerNames('decoder', layer),
    crossQueryWeight: `${at}.encoder_attn.q_proj.weight`,
    crossQueryBias: `${at}.encoder_attn.q_proj.bias`,
    crossProjectionWeight: `${at}.encoder_attn.out_proj.weight`,
    crossProjectionBias: `${at}.encoder_attn.out_proj.bias`,
    crossGamma: `${at}.encoder_attn_layer_norm.weight`,
    crossBeta: `${at}.encoder_attn_layer_norm.bias`,
  }
}

/** What makes keys and values of the memory for a decoder layer. */
export const memoryNames = (layer: number) => {
  const at = `decoder.layers.${layer}.encoder_attn`
  return {
    keyWeight: `${at}.k_proj.weight`,
    keyBias: `${at}.k_proj.bias`,
    valueWeight: `${at}.v_proj.weight`,
    valueBias: `${at}.v_proj.bias`,
  }
}

/** The shape the configuration gives each tensor that a checkpoint must have. */
export function seq2seqShapes(config: Seq2seqConfig): Shapes {
  const { hidden, vocab } = config
  const shapes: Record<string, readonly number[]> = { [shared]: [vocab, hidden] }
  const add = (names: Readonly<Record<string, string>>, inner: number): void => {
    for (const [weight, name] of Object.entries(names)) {
      if (weight === 'fc1Weight') shapes[name] = [inner, hidden]
      else if (weight === 'fc2Weight') shapes[name] = [hidden, inner]
      else if (weight === 'fc1Bias') shapes[name] = [inner]
      else shapes[name] = weight.endsWith('Weight') ? [hidden, hidden] : [hidden]
    }
  }
  for (let i = 0; i < config.encoder.layers; i++) add(encoderLayerNames(i), config.encoder.inner)
  for (let i = 0; i < config.decoder.layers; i++) {
    add(decoderLayerNames(i), config.decoder.inner)
    add(memoryNames(i), config.decoder.inner)
  }
  if (config.finalNorm) for (const side of ['encoder', 'decoder'] as const) add(seq2seqFinalNorm(side), hidden)
  if (!config.tied) shapes[ownHead] = [vocab, hidden]
  return shapes
}

/** Names a checkpoint may have for a tensor. Of tied embeddings it may hold any one. */
function namesOf(name: string, { tied }: Seq2seqConfig): string[] {
  const either = (name: string): string[] => [`model.${name}`, name]
  if (name !== shared) return either(name)
  const copies = [shared, 'encoder.embed_tokens.weight', 'decoder.embed_tokens.weight', ...(tied ? [ownHead] : [])]
  return copies.flatMap(either)
}

/**
 * The model's weights by name, converted to `dtype`. Position tables that the checkpoint leaves out are computed; the bias of the logits
 * is taken if there is one, and rules out the tokens that the configuration does.
 * @throws usage `weights.missing`, `weights.shape`, `weights.dtype` naming the tensor, what the configuration expects and what was found
 */
export function seq2seqWeights(config: Seq2seqConfig, file: Safetensors, dtype: FloatType): Record<string, WeightTensor> {
  const find = (name: string) => findTensor(file, namesOf(name, config))
  const weights: Record<string, WeightTensor> = {}
  for (const [name, shape] of Object.entries(seq2seqShapes(config))) weights[name] = takeTensor(find(name), name, shape, dtype)
  const table = [config.positions, config.hidden]
  for (const side of ['encoder', 'decoder'] as const) {
    const name = positionsOf(side)
    const found = find(name)
    weights[name] = found === undefined ? sinusoids(config, dtype) : takeTensor(found, name, table, dtype)
  }
  const bias = find(logitsBias)
  if (bias !== undefined)
    weights[logitsBias] = { ...takeTensor(bias, logitsBias, [1, config.vocab], dtype), shape: [config.vocab] }
  if (config.badTokens.length > 0) weights[logitsBias] = withoutTokens(config, weights[logitsBias], dtype)
  return weights
}

/** The bias of the logits, by which tokens that a result never has get no probability. */
function withoutTokens({ vocab, badTokens }: Seq2seqConfig, bias: WeightTensor | undefined, dtype: FloatType): WeightTensor {
  const values = bias === undefined ? new Float32Array(vocab) : Float32Array.from(decode(dtype, bias.data))
  for (const token of badTokens) values[token] = Number.NEGATIVE_INFINITY
  return { dtype, shape: [vocab], data: encode(dtype, values) }
}

/**
 * Sines and cosines of the position times 10000^(-2k/hidden) (Vaswani et al. 2017), as HF lays them out: a row holds the sines for every
 * k, one more of them where `hidden` is odd, and then the cosines.
 */
function sinusoids({ positions, hidden }: Seq2seqConfig, dtype: FloatType): WeightTensor {
  const sines = Math.ceil(hidden / 2)
  const values = Float32Array.from({ length: positions * hidden }, (_, at) => {
    const column = at % hidden
    const k = column < sines ? column : column - sines
    const angle = Math.floor(at / hidden) / 10_000 ** ((2 * k) / hidden)
    return column < sines ? Math.sin(angle) : Math.cos(angle)
  })
  return { dtype, shape: [positions, hidden], data: encode(dtype, values) }
}
