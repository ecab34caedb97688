/**
 * INT8 with row-major matrices. `int8-row` runs all eight matmuls of a layer in int8, with the kernels of FasterTransformer v3.0 between them. The
 * six with weights are the library's, or generated ones that a tuning file lists as faster. `best-encoder-int8` keeps attention in floats, where it
 * is one kernel. It quantises in the stores of attention and of the norms, and in the epilogues of the other matmuls, so that no kernel only
 * converts. Pre-LN layers pass on floats: the next matmuls read the normalised values, and the residual is not normalised.
 */
import { plan } from 'heddle'
import { everyLayer, type LayerForm } from '../graphs/encoder_layers.js'
import { headsRows16, transposedHeadsRows16 } from '../layouts/heads.js'
import { rows16 } from '../layouts/matrix.js'
import { attentionNodes } from './attention_nodes.js'
import { aroundLayers } from './best_encoder.js'

const packed = { batch: 'b', seq: 's', tokens: 't', lengths: 'lengths' }

/** Int8 inputs inside a layer, other than its own input, for any position of its norms. */
const inLayer = ['merged.pack', 'attentionNorm', 'fc1Activation', 'outputNorm'] as const
/** Operands of the matmuls of attention. */
const inAttention = ['queryBias', 'keyBias', 'valueBias', 'probabilities'] as const
/** Values passed between layers, as float and int8, if the next layer's matmuls read them directly. */
const across = ['x', 'outputNorm'] as const

const rowStart = {
  packed,
  edges: {
    queryHeads: { layout: headsRows16 },
    keyHeads: { layout: headsRows16 },
    valueHeads: { layout: transposedHeadsRows16 },
    'probabilities.int8': { layout: rows16 },
  },
  tuned: ['int8_matmul'],
} as const

/** Kernels between matmuls without norms. */
const rowKernels = ({ activation, mask }: LayerForm) =>
  ({
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
    [`int8_row_softmax${mask}`]: ['scores.float', 'scaled', 'masked', 'probabilities', 'probabilities.int8'],
    int8_row_merge_heads_pack: ['context.float', 'merged', 'merged.pack', 'merged.pack.int8'],
    [`int8_row_bias_${activation}`]: ['fc1.float', 'fc1Bias', 'fc1Activation', 'fc1Activation.int8'],
  }) as const

const row = (form: LayerForm) =>
  plan('int8-row', form.layer, {
    ...rowStart,
    quantised: { values: ['x', ...inAttention, ...inLayer], across },
    groups: {
      ...rowKernels(form),
      int8_row_bias_residual_layer_norm: [
        ['projection.float', 'projectionBias', 'attentionResidual', 'attentionNorm', 'attentionNorm.int8'],
        ['fc2.float', 'fc2Bias', 'outputResidual', 'outputNorm', 'outputNorm.int8'],
      ],
    },
  })

const rowPre = (form: LayerForm) =>
  plan('int8-row', form.layer, {
    ...rowStart,
    quantised: { values: [...inAttention, ...inLayer] },
    groups: {
      ...rowKernels(form),
      int8_row_layer_norm: ['attentionNorm', 'attentionNorm.int8'],
      int8_row_bias_residual_and_layer_norm: [
        'projection.float',
        'projectionBias',
        'attentionResidual',
        'outputNorm',
        'outputNorm.int8',
      ],
      int8_row_bias_residual: ['fc2.float', 'fc2Bias', 'outputResidual'],
    },
  })

/** Groups of `best-encoder-int8`. @param norm the kernel of norms, which stores floats too if residuals read them */
const bestGroups = ({ activation, mask }: LayerForm, norm: string) =>
  ({
    int8_matmul_bias: ['qkv', 'qkv.float', 'qkvBias'],
    [`attention${mask}_quantize`]: [...attentionNodes, 'merged.pack.int8'],
    int8_matmul_bias_residual: [
      ['projection', 'projection.float', 'projectionBias', 'attentionResidual'],
      ['fc2', 'fc2.float', 'fc2Bias', 'outputResidual'],
    ],
    [norm]: [
      ['attentionNorm', 'attentionNorm.int8'],
      ['outputNorm', 'outputNorm.int8'],
    ],
    [`int8_matmul_bias_${activation}_quantize`]: ['fc1', 'fc1.float', 'fc1Bias', 'fc1Activation', 'fc1Activation.int8'],
  }) as const

const bestStart = {
  packed,
  stacked: { qkv: ['query', 'key', 'value'], qkvBias: ['queryBias', 'keyBias', 'valueBias'] },
} as const

const best = (form: LayerForm) =>
  plan('best-encoder-int8', form.layer, {
    ...bestStart,
    quantised: { values: ['x', ...inLayer], across },
    groups: bestGroups(form, 'layer_norm_quantize'),
  })

const bestPre = (form: LayerForm) =>
  plan('best-encoder-int8', form.layer, {
    ...bestStart,
    quantised: { values: inLayer },
    groups: bestGroups(form, 'layer_norm_to_int8'),
  })

export const int8Row = everyLayer.map((form) => (form.norms === 'post' ? row(form) : rowPre(form)))

export const bestEncoderInt8 = [
  ...everyLayer.map((form) => (form.norms === 'post' ? best(form) : bestPre(form))),
  ...aroundLayers('best-encoder-int8'),
]
