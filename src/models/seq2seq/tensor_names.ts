/**
 * Which tensor of a Pegasus or Marian checkpoint is which weight of the encoder's and the decoder's program. Names are without the
 * checkpoint's `model.` prefix.
 */
import type { Seq2seqConfig } from './seq2seq_config.js'

export type Side = 'encoder' | 'decoder'
type Names = Readonly<Record<string, string>>

export const shared = 'shared.weight'
export const ownHead = 'lm_head.weight'
export const logitsBias = 'final_logits_bias'
/** The table a stack embeds tokens with. */
export const wordsOf = (side: Side, { sharedEmbeddings }: Pick<Seq2seqConfig, 'sharedEmbeddings'>): string =>
  sharedEmbeddings ? shared : `${side}.embed_tokens.weight`
export const positionsOf = (side: Side): string => `${side}.embed_positions.weight`

/** What a stack embeds tokens with. */
const embeddings = (side: Side, config: Seq2seqConfig) => ({ words: wordsOf(side, config), positions: positionsOf(side) })

/** The norm behind a stack of pre-LN layers. */
const finalNorm = (side: Side) => ({
  gamma: `${side}.layer_norm.weight`,
  beta: `${side}.layer_norm.bias`,
})

/** The logits' weight and, where the checkpoint has one, their bias. */
export const seq2seqHead = (config: Seq2seqConfig) => ({
  weight: config.tied ? wordsOf('decoder', config) : ownHead,
  bias: logitsBias,
})

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
const encoderLayerNames = (layer: number) => layerNames('encoder', layer)

/** Weights of a decoder layer, for its graph; keys and values of the memory are computed elsewhere. */
const decoderLayerNames = (layer: number) => {
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
const memoryNames = (layer: number) => {
  const at = `decoder.layers.${layer}.encoder_attn`
  return {
    keyWeight: `${at}.k_proj.weight`,
    keyBias: `${at}.k_proj.bias`,
    valueWeight: `${at}.v_proj.weight`,
    valueBias: `${at}.v_proj.bias`,
  }
}

const below = (prefix: string, names: Names): [string, string][] =>
  Object.entries(names).map(([weight, tensor]) => [`${prefix}.${weight}`, tensor])

const layersOf = (count: number, of: (layer: number) => [string, string][]): [string, string][] =>
  Array.from({ length: count }, (_, layer) => of(layer)).flat()

/** Tensors by the names that the encoder's program has for its weights. */
export const encoderTensors = (config: Seq2seqConfig): Names =>
  Object.fromEntries([
    ...below('embeddings', embeddings('encoder', config)),
    ...layersOf(config.encoder.layers, (layer) => below(`layer${layer}`, encoderLayerNames(layer))),
    ...below('norm', finalNorm('encoder')),
    ...layersOf(config.decoder.layers, (layer) => below(`memory${layer}`, memoryNames(layer))),
  ])

/** Tensors by the names that the decoder's program has for its weights. */
export const decoderTensors = (config: Seq2seqConfig): Names =>
  Object.fromEntries([
    ...below('embeddings', embeddings('decoder', config)),
    ...layersOf(config.decoder.layers, (layer) => below(`layer${layer}`, decoderLayerNames(layer))),
    ...below('norm', finalNorm('decoder')),
    ...below('head', seq2seqHead(config)),
  ])
