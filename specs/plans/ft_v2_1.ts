/**
 * FasterTransformer v2.1's encoder: one matmul for query, key and value, and the padding removed before the first layer. Attention works on padded
 * tokens: the bias and split kernel restores the padding, the head merge removes it again. v2.1 has no pre-LN encoder; its residuals and norms are
 * grouped as in its decoder.
 */
import { plan } from 'heddle'
import { fasterTransformerLayers, type LayerForm } from '../graphs/encoder_layers.js'
import { memoryKeysValues } from '../graphs/seq2seq_encoder.js'

const before = {
  packed: { batch: 'b', seq: 's', tokens: 't', lengths: 'lengths' },
  stacked: { qkv: ['query', 'key', 'value'] },
} as const

/** Groups that do not depend on the position of the norms. */
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
  merge_heads_pack: ['merged', 'merged.pack'],
} as const

const over = ({ layer, activation, mask }: LayerForm) =>
  plan('ft-v2.1', layer, {
    ...before,
    groups: {
      ...around,
      [`scale_mask${mask}_softmax`]: ['scaled', 'masked', 'probabilities'],
      bias_residual_layer_norm: [
        ['projectionBias', 'attentionResidual', 'attentionNorm'],
        ['fc2Bias', 'outputResidual', 'outputNorm'],
      ],
      [`bias_${activation}`]: ['fc1Bias', 'fc1Activation'],
    },
  })

const overPre = ({ layer, activation, mask }: LayerForm) =>
  plan('ft-v2.1', layer, {
    ...before,
    groups: {
      ...around,
      [`scale_mask${mask}_softmax`]: ['scaled', 'masked', 'probabilities'],
      bias_residual_and_layer_norm: ['projectionBias', 'attentionResidual', 'outputNorm'],
      [`bias_${activation}`]: ['fc1Bias', 'fc1Activation'],
      bias_residual: ['fc2Bias', 'outputResidual'],
    },
  })

export const ftV21 = [
  ...fasterTransformerLayers.map((form) => (form.norms === 'post' ? over(form) : overPre(form))),
  plan('ft-v2.1', memoryKeysValues, { groups: { kv_bias_split_heads: ['keyBias', 'valueBias', 'keyHeads', 'valueHeads'] } }),
]
