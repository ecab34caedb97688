/**
 * FasterTransformer v1.0's encoder: 8 matmuls and 6 fused kernels per layer, one more in a pre-LN layer. The kernels are derived from the primitives;
 * the plan only groups them.
 */
import { plan } from 'heddle'
import { fasterTransformerLayers, type LayerForm } from '../graphs/encoder_layers.js'

const over = ({ layer, activation, mask }: LayerForm) =>
  plan('ft-v1', layer, {
    groups: {
      qkv_bias_split_heads: ['queryBias', 'keyBias', 'valueBias', 'queryHeads', 'keyHeads', 'valueHeads'],
      [`scale_mask${mask}_softmax`]: ['scaled', 'masked', 'probabilities'],
      bias_residual_layer_norm: [
        ['projectionBias', 'attentionResidual', 'attentionNorm'],
        ['fc2Bias', 'outputResidual', 'outputNorm'],
      ],
      [`bias_${activation}`]: ['fc1Bias', 'fc1Activation'],
    },
  })

/** v1.0 has no pre-LN encoder: its residuals and norms are grouped as in the decoder of v2.0. */
const overPre = ({ layer, activation, mask }: LayerForm) =>
  plan('ft-v1', layer, {
    groups: {
      qkv_bias_split_heads: ['queryBias', 'keyBias', 'valueBias', 'queryHeads', 'keyHeads', 'valueHeads'],
      [`scale_mask${mask}_softmax`]: ['scaled', 'masked', 'probabilities'],
      bias_residual_and_layer_norm: ['projectionBias', 'attentionResidual', 'outputNorm'],
      [`bias_${activation}`]: ['fc1Bias', 'fc1Activation'],
      bias_residual: ['fc2Bias', 'outputResidual'],
    },
  })

export const ftV1 = fasterTransformerLayers.map((form) => (form.norms === 'post' ? over(form) : overPre(form)))
