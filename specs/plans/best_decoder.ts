/**
 * This project's own decoder, one step at a time: one matmul for query, key and value, biases, activation and residuals in epilogues, and one kernel
 * per attention. Self-attention over the row's past also writes keys and values into their caches. A greedy step chooses its words within the head's
 * matmul, whose logits are never stored.
 */
import { type GraphDecl, plan } from 'heddle'
import { biasedLanguageModelHead, decoderNorm, embedStep, languageModelHead } from '../graphs/decoder.js'
import { decoderLayers } from '../graphs/decoder_layer.js'
import { greedyHeads } from '../graphs/greedy_heads.js'
import { crossAttentionNodes, selfAttentionNodes } from './decoder_nodes.js'

type DecoderNode = typeof decoderLayers.pre.relu extends GraphDecl<infer N> ? N : never

const stacked = { qkv: ['query', 'key', 'value'], qkvBias: ['queryBias', 'keyBias', 'valueBias'] } as const
const attention = { decode_attention: selfAttentionNodes, cross_attention: crossAttentionNodes } as const
const matmul_bias_residual = [
  ['projection', 'projectionBias', 'attentionResidual'],
  ['crossProjection', 'crossProjectionBias', 'crossResidual'],
  ['fc2', 'fc2Bias', 'outputResidual'],
] as const

/** Norms before matmuls are kernels of their own. */
const normsApart = (layer: GraphDecl<DecoderNode>, activation: string, byRows?: Readonly<Record<number, string>>) =>
  plan('best-decoder', layer, {
    stacked,
    ...(byRows === undefined ? {} : { byRows }),
    groups: {
      matmul_bias: [
        ['qkv', 'qkvBias'],
        ['crossQuery', 'crossQueryBias'],
      ],
      ...attention,
      matmul_bias_residual,
      [`matmul_bias_${activation}`]: ['fc1', 'fc1Bias', 'fc1Activation'],
    },
  })

/** Norms before matmuls are computed inside of them: three launches fewer. */
const normsInside = (layer: GraphDecl<DecoderNode>, activation: string) =>
  plan('norms-in-matmuls', layer, {
    stacked,
    groups: {
      layer_norm_matmul_bias: [
        ['attentionNorm', 'qkv', 'qkvBias'],
        ['crossNorm', 'crossQuery', 'crossQueryBias'],
      ],
      ...attention,
      matmul_bias_residual,
      [`layer_norm_matmul_bias_${activation}`]: ['outputNorm', 'fc1', 'fc1Bias', 'fc1Activation'],
    },
  })

export const bestDecoder = [
  ...Object.entries(decoderLayers.pre).map(([activation, layer]) => normsApart(layer, activation, { 1: 'norms-in-matmuls' })),
  ...Object.entries(decoderLayers.pre).map(([activation, layer]) => normsInside(layer, activation)),
  ...Object.entries(decoderLayers.post).map(([activation, layer]) => normsApart(layer, activation)),
  plan('best-decoder', embedStep, { groups: { embed_step: ['words', 'scaled', 'placed'] } }),
  plan('best-decoder', decoderNorm, { groups: {} }),
  plan('best-decoder', languageModelHead, { groups: { matmul_cast_f32: ['product', 'logits'] } }),
  plan('best-decoder', biasedLanguageModelHead, { groups: { matmul_bias_cast_f32: ['product', 'biased', 'logits'] } }),
  plan('best-decoder', greedyHeads.words.decoder, { groups: { matmul_greedy: ['product', 'logits', 'chosen'] } }),
  plan('best-decoder', greedyHeads.losses.decoder, { groups: { matmul_greedy_loss: ['product', 'logits', 'chosen'] } }),
  plan('best-decoder', greedyHeads.words.biased, { groups: { matmul_bias_greedy: ['product', 'biased', 'logits', 'chosen'] } }),
  plan('best-decoder', greedyHeads.losses.biased, {
    groups: { matmul_bias_greedy_loss: ['product', 'biased', 'logits', 'chosen'] },
  }),
]
