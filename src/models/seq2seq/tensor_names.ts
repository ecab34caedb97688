/**
 * Mapping from the weights of the encoder's and decoder's programs to tensors of a Pegasus or Marian checkpoint. Names are without the
 * checkpoint's `model.` prefix.
 */
import { below, belowEach, linearAs, norm, normAs, type TensorNames } from '../parts/weight_names.js'
import type { Seq2seqConfig } from './seq2seq_config.js'

export type Side = 'encoder' | 'decoder'

export const shared = 'shared.weight'
export const ownHead = 'lm_head.weight'
export const logitsBias = 'final_logits_bias'
/** Token embedding table of a stack. */
export const wordsOf = (side: Side, { sharedEmbeddings }: Pick<Seq2seqConfig, 'sharedEmbeddings'>): string =>
  sharedEmbeddings ? shared : `${side}.embed_tokens.weight`
export const positionsOf = (side: Side): string => `${side}.embed_positions.weight`

/** Embedding tables of a stack. */
const embeddings = (side: Side, config: Seq2seqConfig) => ({ words: wordsOf(side, config), positions: positionsOf(side) })

/** The logits' weight and, if the checkpoint has one, their bias. */
export const seq2seqHead = (config: Seq2seqConfig) => ({
  weight: config.tied ? wordsOf('decoder', config) : ownHead,
  bias: logitsBias,
})

/** Self-attention, feed-forward network and their norms. */
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

/** Tensors of a decoder layer, without the projections of cross-attention keys and values, which the encoder's program applies. */
const decoderLayerNames = (layer: number): TensorNames => {
  const at = `decoder.layers.${layer}.encoder_attn`
  return {
    ...layerNames('decoder', layer),
    ...linearAs('crossQuery', `${at}.q_proj`),
    ...linearAs('crossProjection', `${at}.out_proj`),
    ...normAs('cross', `${at}_layer_norm`),
  }
}

/** Projections of the encoder's output to a decoder layer's cross-attention keys and values. */
const memoryNames = (layer: number): TensorNames => {
  const at = `decoder.layers.${layer}.encoder_attn`
  return { ...linearAs('key', `${at}.k_proj`), ...linearAs('value', `${at}.v_proj`) }
}

/** Checkpoint tensors by the weight names of the encoder's program. */
export const encoderTensors = (config: Seq2seqConfig): TensorNames =>
  Object.fromEntries([
    ...below('embeddings', embeddings('encoder', config)),
    ...belowEach('layer', config.encoder.layers, (layer) => layerNames('encoder', layer)),
    ...below('norm', norm('encoder.layer_norm')),
    ...belowEach('memory', config.decoder.layers, memoryNames),
  ])

/** Checkpoint tensors by the weight names of the decoder's program. */
export const decoderTensors = (config: Seq2seqConfig): TensorNames =>
  Object.fromEntries([
    ...below('embeddings', embeddings('decoder', config)),
    ...belowEach('layer', config.decoder.layers, decoderLayerNames),
    ...below('norm', norm('decoder.layer_norm')),
    ...below('head', seq2seqHead(config)),
  ])
