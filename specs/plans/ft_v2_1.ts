/**
 * FasterTransformer v2.1's encoder: one matmul for query, key and value, and the padding removed before the first layer. Attention
 * works on padded tokens: the bias and split kernel restores the padding, the head merge removes it again.
 */
import { type GraphDecl, plan } from 'heddle'
import { encoderLayerGelu, encoderLayerGeluTanh, encoderLayerRelu } from '../graphs/encoder_layer.js'

type EncoderNode = typeof encoderLayerGelu extends GraphDecl<infer N> ? N : never

const over = (layer: GraphDecl<EncoderNode>, activation: string) =>
  plan('ft-v2.1', layer, {
    packed: { batch: 'b', seq: 's', tokens: 't' },
    stacked: { qkv: ['query', 'key', 'value'] },
    groups: {
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
      bias_residual_layer_norm: [
        ['projectionBias', 'attentionResidual', 'attentionNorm'],
        ['fc2Bias', 'outputResidual', 'outputNorm'],
      ],
      [`bias_${activation}`]: ['fc1Bias', 'fc1Activation'],
    },
  })

export const ftV21 = [over(encoderLayerGelu, 'gelu'), over(encoderLayerGeluTanh, 'gelu_tanh'), over(encoderLayerRelu, 'relu')]
