/**
 * This project's own encoder: tokens packed from the embedding to the output, one matmul for query, key and value with its bias
 * in the epilogue, attention in one kernel that reads packed rows, activation in the epilogue of the first inner matmul.
 */
import { type GraphDecl, plan } from 'heddle'
import { embeddings } from '../graphs/embeddings.js'
import { encoderLayerGelu, encoderLayerGeluTanh, encoderLayerRelu } from '../graphs/encoder_layer.js'
import { hiddenStates, pooler, tokenClassifier } from '../graphs/heads.js'
import { attentionNodes } from './attention_nodes.js'

type EncoderNode = typeof encoderLayerGelu extends GraphDecl<infer N> ? N : never

const packed = { batch: 'b', seq: 's', tokens: 't' }

const over = (layer: GraphDecl<EncoderNode>, activation: string) =>
  plan('best-encoder', layer, {
    packed,
    stacked: { qkv: ['query', 'key', 'value'], qkvBias: ['queryBias', 'keyBias', 'valueBias'] },
    groups: {
      matmul_bias: ['qkv', 'qkvBias'],
      attention: attentionNodes,
      matmul_bias_residual: [
        ['projection', 'projectionBias', 'attentionResidual'],
        ['fc2', 'fc2Bias', 'outputResidual'],
      ],
      [`matmul_bias_${activation}`]: ['fc1', 'fc1Bias', 'fc1Activation'],
    },
  })

export const bestEncoder = [
  over(encoderLayerGelu, 'gelu'),
  over(encoderLayerGeluTanh, 'gelu_tanh'),
  over(encoderLayerRelu, 'relu'),
  plan('best-encoder', embeddings, {
    packed,
    groups: { embed_layer_norm: ['words', 'types', 'typed', 'placed.unpack', 'placed', 'placed.pack', 'norm'] },
  }),
  plan('best-encoder', tokenClassifier, { packed, groups: { bias_argmax: ['classesBias', 'logits', 'labels'] } }),
  plan('best-encoder', pooler, {
    packed,
    groups: { unpack_first_token: ['first.unpack', 'first'], bias_tanh: ['denseBias', 'activated', 'pooled'] },
  }),
  plan('best-encoder', hiddenStates, { packed, groups: {} }),
]
