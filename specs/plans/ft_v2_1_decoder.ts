/**
 * FasterTransformer v2.1's decoder: six matmuls, one of which computes query, key and value at once, and the kernels between them. Each attention
 * adds its biases itself; a norm includes the bias and the residual before it. Its layers are pre-LN with ReLU; the other forms are grouped alike.
 */
import { type GraphDecl, plan } from 'heddle'
import { biasedLanguageModelHead, embedStep } from '../graphs/decoder.js'
import { decoderLayers } from '../graphs/decoder_layer.js'
import { greedyHeads } from '../graphs/greedy_heads.js'
import { crossAttentionNodes, selfAttentionNodes } from './decoder_nodes.js'

type DecoderNode = typeof decoderLayers.pre.relu extends GraphDecl<infer N> ? N : never

const common = (activation: string) =>
  ({
    decode_attention_bias: ['query', 'key', 'value', ...selfAttentionNodes],
    cross_attention_bias: ['crossQueryBias', ...crossAttentionNodes],
    [`bias_${activation}`]: ['fc1Bias', 'fc1Activation'],
  }) as const

const stacked = { qkv: ['query', 'key', 'value'] } as const

const pre = (layer: GraphDecl<DecoderNode>, activation: string) =>
  plan('ft-v2.1', layer, {
    stacked,
    groups: {
      ...common(activation),
      bias_residual_and_layer_norm: [
        ['projectionBias', 'attentionResidual', 'crossNorm'],
        ['crossProjectionBias', 'crossResidual', 'outputNorm'],
      ],
      bias_residual: ['fc2Bias', 'outputResidual'],
    },
  })

const post = (layer: GraphDecl<DecoderNode>, activation: string) =>
  plan('ft-v2.1', layer, {
    stacked,
    groups: {
      ...common(activation),
      bias_residual_layer_norm: [
        ['projectionBias', 'attentionResidual', 'attentionNorm'],
        ['crossProjectionBias', 'crossResidual', 'crossNorm'],
        ['fc2Bias', 'outputResidual', 'outputNorm'],
      ],
    },
  })

export const ftV21Decoder = [
  ...Object.entries(decoderLayers.pre).map(([activation, layer]) => pre(layer, activation)),
  ...Object.entries(decoderLayers.post).map(([activation, layer]) => post(layer, activation)),
  plan('ft-v2.1', embedStep, { groups: { embed_step: ['words', 'scaled', 'placed'] } }),
  plan('ft-v2.1', biasedLanguageModelHead, { groups: { bias_cast_f32: ['biased', 'logits'] } }),
  plan('ft-v2.1', greedyHeads.words.biased, { groups: { bias_cast_f32: ['biased', 'logits'] } }),
  plan('ft-v2.1', greedyHeads.losses.biased, { groups: { bias_cast_f32: ['biased', 'logits'] } }),
]
