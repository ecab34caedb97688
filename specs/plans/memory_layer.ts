/**
 * Plans of encoder layers whose tokens attend another sequence. Keys and values have rows of their own there: a group over queries, keys and values
 * elsewhere becomes one over queries and one over the other two. Padding stays, since a plan removes that of one sequence alone.
 */
import { plan } from 'heddle'
import { memoryLayers } from '../graphs/encoder_layer.js'

const ftV1 = Object.entries(memoryLayers).map(([activation, layer]) =>
  plan('ft-v1', layer, {
    groups: {
      query_bias_split_heads: ['queryBias', 'queryHeads'],
      kv_bias_split_heads: ['keyBias', 'valueBias', 'keyHeads', 'valueHeads'],
      scale_mask_memory_softmax: ['scaled', 'masked', 'probabilities'],
      bias_residual_layer_norm: [
        ['projectionBias', 'attentionResidual', 'attentionNorm'],
        ['fc2Bias', 'outputResidual', 'outputNorm'],
      ],
      [`bias_${activation}`]: ['fc1Bias', 'fc1Activation'],
    },
  }),
)

const bestEncoder = Object.entries(memoryLayers).map(([activation, layer]) =>
  plan('best-encoder', layer, {
    stacked: { kv: ['key', 'value'], kvBias: ['keyBias', 'valueBias'] },
    groups: {
      matmul_bias: [
        ['query', 'queryBias'],
        ['kv', 'kvBias'],
      ],
      attention_memory: [
        'keyBias',
        'valueBias',
        'queryHeads',
        'keyHeads',
        'valueHeads',
        'scores',
        'scaled',
        'masked',
        'probabilities',
        'context',
        'merged',
      ],
      matmul_bias_residual: [
        ['projection', 'projectionBias', 'attentionResidual'],
        ['fc2', 'fc2Bias', 'outputResidual'],
      ],
      [`matmul_bias_${activation}`]: ['fc1', 'fc1Bias', 'fc1Activation'],
    },
  }),
)

export const memoryLayerPlans = [...ftV1, ...bestEncoder]
