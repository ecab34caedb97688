/**
 * FasterTransformer v3.0's INT8 encoder, kernel for kernel. Everything between two matmuls is one kernel that converts int32 sums back to floats,
 * computes, and quantises for the next matmul. Matrices are stored in COL32, weights and keys in an order of tensor cores. In mode 1 the residual is
 * float, and inputs of a matmul are quantised by a kernel of its own; in mode 2 the residual is int8 as well. Query, key and value are one launch,
 * which reads its input once. Packed, padding is removed before the first layer and restored around attention.
 */
import { type LayoutDecl, plan } from 'heddle'
import { fasterTransformerLayers, type LayerForm } from '../graphs/encoder_layers.js'
import {
  headsCol4,
  headsCol32,
  headsCol32TwoRows,
  matricesCol32,
  transposedHeadsCol4,
  transposedHeadsCol32TwoRows,
} from '../layouts/heads.js'
import { col4, col32, col32TwoRows } from '../layouts/matrix.js'

/** Order of weights, keys and transposed values, and its suffix in names. */
interface Order {
  readonly suffix: string
  readonly kernel: string
  readonly weights: LayoutDecl
  readonly keys: LayoutDecl
  readonly values: LayoutDecl
}

/** For Turing; and the order that came with Ampere. */
const turing: Order = { suffix: '', kernel: 'col4', weights: col4, keys: headsCol4, values: transposedHeadsCol4 }
const ampere: Order = {
  suffix: '-2r4r4',
  kernel: '2r4r4',
  weights: col32TwoRows,
  keys: headsCol32TwoRows,
  values: transposedHeadsCol32TwoRows,
}

const packing = { batch: 'b', seq: 's', tokens: 't', lengths: 'lengths' }

/** Matrices stored in COL32 between kernels in both modes. */
const stored = {
  query: { layout: col32 },
  key: { layout: col32 },
  value: { layout: col32 },
  scores: { layout: matricesCol32 },
  'probabilities.int8': { layout: matricesCol32 },
  context: { layout: headsCol32 },
  projection: { layout: col32 },
  fc1: { layout: col32 },
  'fc1Activation.int8': { layout: col32 },
  fc2: { layout: col32 },
} as const

/** A plan of v3.0: its mode, its order, and whether padding is removed. */
interface Variant {
  readonly mode: 1 | 2
  readonly order: Order
  readonly packed: boolean
}

/** Parts of a layer's plan that do not depend on the position of its norms: kernels between matmuls without norms, and layouts. */
function around({ mode, order: { suffix, kernel, keys, values }, packed }: Variant, { activation, mask }: LayerForm) {
  const [name, padded] = [`ft-v3-mode${mode}${suffix}`, packed ? '_unpack' : '']
  const heads = { queryHeads: { layout: headsCol32 }, keyHeads: { layout: keys }, valueHeads: { layout: values } } as const
  const shared = {
    [`int8_matmul_${kernel}_qkv`]: ['query', 'key', 'value'],
    [`int8_matmul_${kernel}`]: [['projection'], ['fc1'], ['fc2']],
    [`int8_scores_${kernel}`]: ['scores'],
    [`int8_context_${kernel}`]: ['context'],
    [`int8_softmax${mask}`]: ['scores.float', 'scaled', 'masked', 'probabilities', 'probabilities.int8'],
    [`int8_bias_${activation}`]: ['fc1.float', 'fc1Bias', 'fc1Activation', 'fc1Activation.int8'],
  } as const
  const qk = [
    'query.float',
    'queryBias',
    'queryBias.int8',
    'queryHeads',
    'key.float',
    'keyBias',
    'keyBias.int8',
    'keyHeads',
  ] as const
  const v = ['value.float', 'valueBias', 'valueBias.int8', 'valueHeads'] as const
  const attention = packed
    ? ({
        [`int8_bias_qk_${kernel}${padded}`]: [...qk, 'queryHeads.unpack', 'keyHeads.unpack'],
        [`int8_bias_v_${kernel}${padded}`]: [...v, 'valueHeads.unpack'],
        int8_merge_heads_pack: ['context.float', 'merged', 'merged.pack', 'merged.pack.int8'],
      } as const)
    : ({
        [`int8_bias_qk_${kernel}`]: qk,
        [`int8_bias_v_${kernel}`]: v,
        int8_merge_heads: ['context.float', 'merged', 'merged.int8'],
      } as const)
  const merged = packed ? 'merged.pack' : 'merged'
  const quantised = ['queryBias', 'keyBias', 'valueBias', 'probabilities', merged, 'fc1Activation'] as const
  const common = packed ? { packed: packing } : {}
  const context = packed ? ({ 'merged.pack.int8': { layout: col32 } } as const) : ({ 'merged.int8': { layout: col32 } } as const)
  return {
    name: `${name}${packed ? '-packed' : ''}`,
    common,
    quantised,
    edges: { ...stored, ...heads, ...context },
    groups: { ...shared, ...attention },
  }
}

function over(variant: Variant, form: LayerForm) {
  const { name, common, quantised, edges, groups } = around(variant, form)
  const { layer } = form
  const { weights } = variant.order
  if (variant.mode === 1) {
    return plan(name, layer, {
      ...common,
      quantised: { values: ['x', 'attentionNorm', ...quantised], weights },
      edges: {
        ...edges,
        x: { layout: col32 },
        'x.int8': { layout: col32 },
        attentionNorm: { layout: col32 },
        'attentionNorm.int8': { layout: col32 },
        outputNorm: { layout: col32 },
      },
      groups: {
        quantize_col32: [['x.int8'], ['attentionNorm.int8']],
        ...groups,
        int8_bias_residual_layer_norm: [
          ['projection.float', 'projectionBias', 'attentionResidual', 'attentionNorm'],
          ['fc2.float', 'fc2Bias', 'outputResidual', 'outputNorm'],
        ],
      },
    })
  }
  return plan(name, layer, {
    ...common,
    quantised: {
      values: ['x', 'attentionNorm', 'outputNorm', ...quantised],
      only: ['x', 'attentionNorm', 'outputNorm'],
      weights,
    },
    edges: {
      ...edges,
      x: { layout: col32 },
      'attentionNorm.int8': { layout: col32 },
      'outputNorm.int8': { layout: col32 },
    },
    groups: {
      ...groups,
      int8_bias_residual_layer_norm_quantize: [
        ['projection.float', 'projectionBias', 'x.float', 'attentionResidual', 'attentionNorm', 'attentionNorm.int8'],
        ['fc2.float', 'fc2Bias', 'attentionNorm.float', 'outputResidual', 'outputNorm', 'outputNorm.int8'],
      ],
    },
  })
}

/**
 * v3.0 has no pre-LN encoder. In mode 1 its norms quantise their results for a matmul, and the residual between layers is float. An int8 residual,
 * mode 2, would be bounded by no norm, and v3.0's list of maxima does not include it.
 */
function overPre(variant: Variant, form: LayerForm) {
  const { name, common, quantised, edges, groups } = around(variant, form)
  return plan(name, form.layer, {
    ...common,
    quantised: { values: ['attentionNorm', 'outputNorm', ...quantised], weights: variant.order.weights },
    edges: {
      ...edges,
      x: { layout: col32 },
      'attentionNorm.int8': { layout: col32 },
      attentionResidual: { layout: col32 },
      'outputNorm.int8': { layout: col32 },
      outputResidual: { layout: col32 },
    },
    groups: {
      layer_norm_to_int8_col32: ['attentionNorm', 'attentionNorm.int8'],
      ...groups,
      int8_bias_residual_and_layer_norm: [
        'projection.float',
        'projectionBias',
        'attentionResidual',
        'outputNorm',
        'outputNorm.int8',
      ],
      int8_bias_residual: ['fc2.float', 'fc2Bias', 'outputResidual'],
    },
  })
}

const variants = ([1, 2] as const).flatMap((mode) =>
  [turing, ampere].flatMap((order) => [false, true].map((packed): Variant => ({ mode, order, packed }))),
)

export const ftV3 = variants.flatMap((variant) =>
  fasterTransformerLayers.flatMap((form) =>
    form.norms === 'post' ? [over(variant, form)] : variant.mode === 1 ? [overPre(variant, form)] : [],
  ),
)
