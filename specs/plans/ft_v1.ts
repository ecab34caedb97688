/**
 * FasterTransformer v1.0's encoder: 8 matmuls and 6 fused kernels a layer, one more where the norms stand in front. The kernels are derived from the primitives;
 * the plan only says which of them run together.
 */
import { type GraphDecl, plan } from 'heddle'
import { encoderLayerGelu, encoderLayerGeluTanh, encoderLayerRelu, encoderLayerSilu } from '../graphs/encoder_layer.js'
import {
  encoderLayerPreGelu,
  encoderLayerPreGeluTanh,
  encoderLayerPreRelu,
  encoderLayerPreSilu,
} from '../graphs/encoder_layer_pre.js'

type EncoderNode = typeof encoderLayerGelu extends GraphDecl<infer N> ? N : never

const over = (layer: GraphDecl<EncoderNode>, activation: string) =>
  plan('ft-v1', layer, {
    groups: {
      qkv_bias_split_heads: ['queryBias', 'keyBias', 'valueBias', 'queryHeads', 'keyHeads', 'valueHeads'],
      scale_mask_softmax: ['scaled', 'masked', 'probabilities'],
      bias_residual_layer_norm: [
        ['projectionBias', 'attentionResidual', 'attentionNorm'],
        ['fc2Bias', 'outputResidual', 'outputNorm'],
      ],
      [`bias_${activation}`]: ['fc1Bias', 'fc1Activation'],
    },
  })

export const ftV1Gelu = over(encoderLayerGelu, 'gelu')
export const ftV1GeluTanh = over(encoderLayerGeluTanh, 'gelu_tanh')
export const ftV1Relu = over(encoderLayerRelu, 'relu')
export const ftV1Silu = over(encoderLayerSilu, 'silu')

/** v1.0 has no pre-LN encoder: its residuals and norms are grouped as the decoder of v2.0 does. */
const overPre = (layer: GraphDecl<EncoderNode>, activation: string) =>
  plan('ft-v1', layer, {
    groups: {
      qkv_bias_split_heads: ['queryBias', 'keyBias', 'valueBias', 'queryHeads', 'keyHeads', 'valueHeads'],
      scale_mask_softmax: ['scaled', 'masked', 'probabilities'],
      bias_residual_and_layer_norm: ['projectionBias', 'attentionResidual', 'outputNorm'],
      [`bias_${activation}`]: ['fc1Bias', 'fc1Activation'],
      bias_residual: ['fc2Bias', 'outputResidual'],
    },
  })

export const ftV1Pre = [
  overPre(encoderLayerPreGelu, 'gelu'),
  overPre(encoderLayerPreGeluTanh, 'gelu_tanh'),
  overPre(encoderLayerPreRelu, 'relu'),
  overPre(encoderLayerPreSilu, 'silu'),
]
