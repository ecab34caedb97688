/**
 * INT8 with row-major matrices. `int8-row` runs all eight matmuls of a layer in int8, with the kernels of FasterTransformer v3.0
 * between them: the six with weights are the library's, or generated where a tuning file says that those were faster.
 * `best-encoder-int8` keeps attention in floats, where it is one kernel, and quantises as attention and the norms store, and in the
 * epilogues of the other matmuls, so that no kernel only converts.
 */
import { plan } from 'heddle'
import { encoderLayerGelu } from '../graphs/encoder_layer.js'
import { headsRows16, transposedHeadsRows16 } from '../layouts/heads.js'
import { rows16 } from '../layouts/matrix.js'
import { attentionNodes } from './attention_nodes.js'
import { aroundLayers } from './best_encoder.js'

const packed = { batch: 'b', seq: 's', tokens: 't', lengths: 'lengths' }

export const int8Row = plan('int8-row', encoderLayerGelu, {
  packed,
  dtypes: ['f32', 'f16'],
  quantised: {
    values: [
      'x',
      'queryBias',
      'keyBias',
      'valueBias',
      'probabilities',
      'merged.pack',
      'attentionNorm',
      'fc1Activation',
      'outputNorm',
    ],
    across: ['x', 'outputNorm'],
  },
  edges: {
    queryHeads: { layout: headsRows16 },
    keyHeads: { layout: headsRows16 },
    valueHeads: { layout: transposedHeadsRows16 },
    'probabilities.int8': { layout: rows16 },
  },
  tuned: ['int8_matmul'],
  groups: {
    int8_matmul: [['query'], ['key'], ['value'], ['projection'], ['fc1'], ['fc2']],
    int8_row_bias_qk: [
      'query.float',
      'queryBias',
      'queryBias.int8',
      'queryHeads.unpack',
      'queryHeads',
      'key.float',
      'keyBias',
      'keyBias.int8',
      'keyHeads.unpack',
      'keyHeads',
    ],
    int8_row_bias_v: ['value.float', 'valueBias', 'valueBias.int8', 'valueHeads.unpack', 'valueHeads'],
    int8_row_softmax: ['scores.float', 'scaled', 'masked', 'probabilities', 'probabilities.int8'],
    int8_row_merge_heads_pack: ['context.float', 'merged', 'merged.pack', 'merged.pack.int8'],
    int8_row_bias_residual_layer_norm: [
      ['projection.float', 'projectionBias', 'attentionResidual', 'attentionNorm', 'attentionNorm.int8'],
      ['fc2.float', 'fc2Bias', 'outputResidual', 'outputNorm', 'outputNorm.int8'],
    ],
    int8_row_bias_gelu: ['fc1.float', 'fc1Bias', 'fc1Activation', 'fc1Activation.int8'],
  },
})

export const bestEncoderInt8 = [
  plan('best-encoder-int8', encoderLayerGelu, {
    packed,
    stacked: { qkv: ['query', 'key', 'value'], qkvBias: ['queryBias', 'keyBias', 'valueBias'] },
    quantised: {
      values: ['x', 'merged.pack', 'attentionNorm', 'fc1Activation', 'outputNorm'],
      across: ['x', 'outputNorm'],
    },
    groups: {
      int8_matmul_bias: ['qkv', 'qkv.float', 'qkvBias'],
      attention_quantize: [...attentionNodes, 'merged.pack.int8'],
      int8_matmul_bias_residual: [
        ['projection', 'projection.float', 'projectionBias', 'attentionResidual'],
        ['fc2', 'fc2.float', 'fc2Bias', 'outputResidual'],
      ],
      layer_norm_quantize: [
        ['attentionNorm', 'attentionNorm.int8'],
        ['outputNorm', 'outputNorm.int8'],
      ],
      int8_matmul_bias_gelu_quantize: ['fc1', 'fc1.float', 'fc1Bias', 'fc1Activation', 'fc1Activation.int8'],
    },
  }),
  ...aroundLayers('best-encoder-int8'),
]
