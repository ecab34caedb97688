/**
 * FasterTransformer v2.1's encoder: one matmul for query, key and value, and the padding removed before the first layer. Attention
 * works on padded tokens: the bias and split kernel restores the padding, the head merge removes it again. v2.1 has no pre-LN encoder;
 * the residuals and norms of one are grouped as its decoder does.
 */
import { type GraphDecl, plan } from 'heddle'
import { encoderLayerGelu, encoderLayerGeluTanh, encoderLayerRelu, encoderLayerSilu } from '../graphs/encoder_layer.js'
import {
  encoderLayerPreGelu,
  encoderLayerPreGeluTanh,
  encoderLayerPreRelu,
  encoderLayerPreSilu,
} from '../graphs/encoder_layer_pre.js'
import { memoryKeysValues } from '../graphs/seq2seq_encoder.js'

type EncoderNode = typeof encoderLayerGelu extends GraphDecl<infer N> ? N : never

const before = {
  packed: { batch: 'b', seq: 's', tokens: 't', lengths: 'lengths' },
  stacked: { qkv: ['query', 'key', 'value'] },
} as const

/** What is grouped wherever the norms stand. */
const around = {
  qkv_bias_unpack_split_heads: [
    'query',
    'key',
    'value',
    'queryBias',
    'keyBias',
    'valueBias',
    'queryHeads.unpack',
    'keyHeads.unpack',
    'valueHeads.unpack',
    'queryHeads',
    'keyHeads',
    'valueHeads',
  ],
  scale_mask_softmax: ['scaled', 'masked', 'probabilities'],
  merge_heads_pack: ['merged', 'merged.pack'],
} as const

const over = (layer: GraphDecl<EncoderNode>, activation: string) =>
  plan('ft-v2.1', layer, {
    ...before,
    groups: {
      ...around,
      bias_residual_layer_norm: [
        ['projectionBias', 'attentionResidual', 'attentionNorm'],
        ['fc2Bias', 'outputResidual', 'outputNorm'],
      ],
      [`bias_${activation}`]: ['fc1Bias', 'fc1Activation'],
    },
  })

const overPre = (layer: GraphDecl<EncoderNode>, activation: string) =>
  plan('ft-v2.1', layer, {
    ...before,
    groups: {
      ...around,
      bias_residual_and_layer_norm: ['projectionBias', 'attentionResidual', 'outputNorm'],
      [`bias_${activation}`]: ['fc1Bias', 'fc1Activation'],
      bias_residual: ['fc2Bias', 'outputResidual'],
    },
  })

export const ftV21 = [
  over(encoderLayerGelu, 'gelu'),
  over(encoderLayerGeluTanh, 'gelu_tanh'),
  over(encoderLayerRelu, 'relu'),
  over(encoderLayerSilu, 'silu'),
  overPre(encoderLayerPreGelu, 'gelu'),
  overPre(encoderLayerPreGeluTanh, 'gelu_tanh'),
  overPre(encoderLayerPreRelu, 'relu'),
  overPre(encoderLayerPreSilu, 'silu'),
  plan('ft-v2.1', memoryKeysValues, { groups: { kv_bias_split_heads: ['keyBias', 'valueBias', 'keyHeads', 'valueHeads'] } }),
]
