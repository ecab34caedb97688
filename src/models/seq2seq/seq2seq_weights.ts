/**
 * Weights of encoder-decoder models, Pegasus and Marian: which tensor of a checkpoint is which weight of the graphs, their shapes, and
 * what a checkpoint may leave out. Names are without the checkpoint's `model.` prefix.
 */
import { usageError } from '../../errors.js'
import { decode, encode } from '../../runtime/buffer.js'
import { tensorBytes } from '../../runtime/session.js'
import { type DeferredTensor, inMemory, type Weight } from '../../runtime/weight.js'
import { type Checkpoint, expectCount, findTensor, takeTensor } from '../files/checkpoint.js'
import type { FloatType } from '../files/convert.js'
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
export const hasLogitsBias = (weights: Readonly<Record<string, Weight>>): boolean => Object.hasOwn(weights, logitsBias)

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
 * The model's weights by name, in `dtype` when they are read. Position tables that the checkpoint leaves out are computed; the bias of the
 * logits is taken if there is one, and rules out the tokens that the configuration does.
 * @throws usage `config.count`, `weights.missing`, `weights.shape`, `weights.dtype` naming the tensor, what the configuration expects and what was found
 */
export function seq2seqWeights(config: Seq2seqConfig, file: Checkpoint, dtype: FloatType): Record<string, DeferredTensor> {
  expectCount(file, 'encoder_layers', config.encoder.layers)
  expectCount(file, 'decoder_layers', config.decoder.layers)
  const find = (name: string) => findTensor(file, namesOf(name, config))
  const weights: Record<string, DeferredTensor> = {}
  for (const [name, shape] of Object.entries(seq2seqShapes(config))) weights[name] = takeTensor(find(name), name, shape, dtype)
  const table = [config.positions, config.hidden]
  for (const side of ['encoder', 'decoder'] as const) {
    const name = positionsOf(side)
    const found = find(name)
    weights[name] = found === undefined ? sinusoids(config, dtype) : takeTensor(found, name, table, dtype)
  }
  const bias = find(logitsBias)
  if (bias !== undefined) {
    const taken = takeTensor(bias, logitsBias, [1, config.vocab], dtype, 'finite or -Infinity')
    weights[logitsBias] = { ...taken, shape: [config.vocab] }
  }
  if (config.badTokens.length > 0) weights[logitsBias] = withoutTokens(config, weights[logitsBias], dtype)
  return weights
}

/** The bias of the logits, by which tokens that a result never has get no probability. */
function withoutTokens({ vocab, badTokens }: Seq2seqConfig, bias: DeferredTensor | undefined, dtype: FloatType): DeferredTensor {
  return {
    ...{ dtype, shape: [vocab], bytes: tensorBytes(dtype, [vocab]) },
    async *pieces(signal) {
      const values =
        bias === undefined ? new Float32Array(vocab) : Float32Array.from(decode(dtype, (await inMemory(bias, signal)).data))
      for (const token of badTokens) values[token] = Number.NEGATIVE_INFINITY
      yield encode(dtype, values)
    },
  }
}

/** Rows of a table that is computed at most: nothing in a checkpoint holds the count of positions against a table that it leaves out. */
const mostPositions = 2 ** 17

/**
 * Sines and cosines of the position times 10000^(-2k/hidden) (Vaswani et al. 2017), as HF lays them out: a row holds the sines for every
 * k, one more of them where `hidden` is odd, and then the cosines.
 * @throws usage `config.count` for more positions than any model has
 */
function sinusoids({ positions, hidden }: Seq2seqConfig, dtype: FloatType): DeferredTensor {
  if (positions > mostPositions) {
    throw usageError('config.count', `max_position_embeddings is ${positions}, and the checkpoint has no table of positions`, {
      hint: `tables of at most ${mostPositions} positions are computed`,
    })
  }
  const sines = Math.ceil(hidden / 2)
  const row = (position: number): Float32Array =>
    Float32Array.from({ length: hidden }, (_, column) => {
      const k = column < sines ? column : column - sines
      const angle = position / 10_000 ** ((2 * k) / hidden)
      return column < sines ? Math.sin(angle) : Math.cos(angle)
    })
  return {
    ...{ dtype, shape: [positions, hidden], bytes: tensorBytes(dtype, [positions, hidden]) },
    async *pieces(signal) {
      for (let first = 0; first < positions; first += rowsAtOnce) {
        signal?.throwIfAborted()
        const rows = Array.from({ length: Math.min(rowsAtOnce, positions - first) }, (_, i) => row(first + i))
        const values = new Float32Array(rows.length * hidden)
        for (const [i, each] of rows.entries()) values.set(each, i * hidden)
        yield encode(dtype, values)
      }
    },
  }
}

/** Rows of a computed table that are made between two looks at whether loading was cancelled. */
const rowsAtOnce = 512
