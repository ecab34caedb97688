/**
 * FasterTransformer v1.0's encoder: 8 matmuls and 6 fused kernels a layer. The kernels are derived from the primitives;
 * the plan only says which of them run together.
 */
import { type GraphDecl, plan } from 'heddle'
import { encoderLayerGelu, encoderLayerGeluTanh, encoderLayerRelu } from '../graphs/encoder_layer.js'

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
