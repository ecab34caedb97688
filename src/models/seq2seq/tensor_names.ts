/**
 * Which tensor of a Pegasus or Marian checkpoint is which weight of the encoder's and the decoder's program. Names are without the
 * checkpoint's `model.` prefix.
 */
import { below, belowEach, linearAs, norm, normAs, type TensorNames } from '../parts/weight_names.js'
import type { Seq2seqConfig } from './seq2seq_config.js'

export type Side = 'encoder' | 'decoder'

export const shared = 'shared.weight'
export const ownHead = 'lm_head.weight'
export const logitsBias = 'final_logits_bias'
/** The table a stack embeds tokens with. */
export const wordsOf = (side: Side, { sharedEmbeddings }: Pick<Seq2seqConfig, 'sharedEmbeddings'>): string =>
  sharedEmbeddings ? shared : `${side}.embed_tokens.weight`
export const positionsOf = (side: Side): string => `${side}.embed_positions.weight`

/** What a stack embeds tokens with. */
const embeddings = (side: Side, config: Seq2seqConfig) => ({ words: wordsOf(side, config), positions: positionsOf(side) })

/** The logits' weight and, where the checkpoint has one, their bias. */
export const seq2seqHead = (config: Seq2seqConfig) => ({
  weight: config.tied ? wordsOf('decoder', config) : ownHead,
  bias: logitsBias,
})

/** Self-attention, inner network and their norms. */
const layerNames = (side: Side, layer: number): TensorNames => {
  const at = `${side}.layers.${layer}`
  return {
    ...linearAs('query', `${at}.self_attn.q_proj`),
    ...linearAs('key', `${at}.self_attn.k_proj`),
    ...linearAs('value', `${at}.self_attn.v_proj`),
    ...linearAs('projection', `${at}.self_attn.out_proj`),
    ...normAs('attention', `${at}.self_attn_layer_norm`),
    ...linearAs('fc1', `${at}.fc1`),
    ...linearAs('fc2', `${at}.fc2`),
    ...normAs('output', `${at}.final_layer_norm`),
  }
}

/** Keys and values of the memory are computed elsewhere. */
const decoderLayerNames = (layer: number): TensorNames => {
  const at = `decoder.layers.${layer}.encoder_attn`
  return {
    ...layerNames('decoder', layer),
    ...linearAs('crossQuery', `${at}.q_proj`),
    ...linearAs('crossProjection', `${at}.out_proj`),
    ...normAs('cross', `${at}_layer_norm`),
  }
}

/** What makes keys and values of the memory for a decoder layer. */
const memoryNames = (layer: number): TensorNames => {
  const at = `decoder.layers.${layer}.encoder_attn`
  return { ...linearAs('key', `${at}.k_proj`), ...linearAs('value', `${at}.v_proj`) }
}

/** Tensors by the names that the encoder's program has for its weights. */
export const encoderTensors = (config: Seq2seqConfig): TensorNames =>
  Object.fromEntries([
    ...below('embeddings', embeddings('encoder', config)),
    ...belowEach('layer', config.encoder.layers, (layer) => layerNames('encoder', layer)),
    ...below('norm', norm('encoder.layer_norm')),
    ...belowEach('memory', config.decoder.layers, memoryNames),
  ])

/** Tensors by the names that the decoder's program has for its weights. */
export const decoderTensors = (config: Seq2seqConfig): TensorNames =>
  Object.fromEntries([
    ...below('embeddings', embeddings('decoder', config)),
    ...belowEach('layer', config.decoder.layers, decoderLayerNames),
    ...below('norm', norm('decoder.layer_norm')),
    ...below('head', seq2seqHead(config)),
  ])
