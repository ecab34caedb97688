/**
 * A decoder layer for one step: attention over the row's own past, attention over the encoder's memory, and a two-matmul inner network, each with its
 * residual. Pre-LN normalises the input of each of them (OpenNMT, Pegasus), post-LN the output (Vaswani et al. 2017, Marian). Every primitive is a
 * node of its own, so that fusion plans can group them in any legal way.
 */
import { type AttrValue, type GraphBuilder, type GraphTensor, graph, tensor } from 'heddle'
import { splitHeads as splitHeadsLayout } from '../layouts/split_heads.js'
import { gelu, geluTanh, relu, silu } from '../ops/activations.js'
import { add } from '../ops/add.js'
import { addBias } from '../ops/add_bias.js'
import { appendStep } from '../ops/append_step.js'
import { gatherBeams } from '../ops/beams.js'
import { layerNorm } from '../ops/layer_norm.js'
import { maskScores } from '../ops/mask_scores.js'
import { mergeHeads } from '../ops/merge_heads.js'
import { scale } from '../ops/scale.js'
import { softmax } from '../ops/softmax.js'
import { splitHeads } from '../ops/split_heads.js'
import { maskSteps } from '../ops/steps.js'
import { type Elementwise, innerNetwork } from './encoder_parts.js'
import { marianLayer } from './typical.js'

const square = tensor('T', 'h*d h*d')
const vector = tensor('T', 'h*d')

const weights = {
  queryWeight: square,
  queryBias: vector,
  keyWeight: square,
  keyBias: vector,
  valueWeight: square,
  valueBias: vector,
  projectionWeight: square,
  projectionBias: vector,
  attentionGamma: vector,
  attentionBeta: vector,
  crossQueryWeight: square,
  crossQueryBias: vector,
  crossProjectionWeight: square,
  crossProjectionBias: vector,
  crossGamma: vector,
  crossBeta: vector,
  fc1Weight: tensor('T', 'i h*d'),
  fc1Bias: tensor('T', 'i'),
  fc2Weight: tensor('T', 'h*d i'),
  fc2Bias: vector,
  outputGamma: vector,
  outputBeta: vector,
} as const

const inputs = {
  x: tensor('T', 'b*w h*d'),
  step: tensor('i32', '1'),
  beams: tensor('i32', 'b*w s'),
  keys: tensor('T', 'b*w s h d', splitHeadsLayout),
  values: tensor('T', 'b*w s h d', splitHeadsLayout),
  memoryKeys: tensor('T', 'b t h d', splitHeadsLayout),
  memoryValues: tensor('T', 'b t h d', splitHeadsLayout),
  lengths: tensor('i32', 'b'),
} as const

type Handles<T> = { readonly [K in keyof T]: GraphTensor }
type Inputs = Handles<typeof inputs>
type Weights = Handles<typeof weights>

const linear = 'm k, n k -> m n'

/** Attention of each row to its own past, including the token of this step. */
function selfAttention(g: GraphBuilder, x: GraphTensor, { step, beams, keys, values }: Inputs, w: Weights, factor: AttrValue) {
  const query = g.matmul(linear, x, w.queryWeight)
  const key = g.matmul(linear, x, w.keyWeight)
  const value = g.matmul(linear, x, w.valueWeight)
  const queryBias = g.apply(addBias, { x: query, bias: w.queryBias }).y
  const keyBias = g.apply(addBias, { x: key, bias: w.keyBias }).y
  const valueBias = g.apply(addBias, { x: value, bias: w.valueBias }).y
  const keyCache = g.apply(appendStep, { cache: keys, x: g.view(keyBias, 'b*w h d'), step }).y
  const valueCache = g.apply(appendStep, { cache: values, x: g.view(valueBias, 'b*w h d'), step }).y
  const keyPast = g.apply(gatherBeams, { cache: keyCache, beams }).y
  const valuePast = g.apply(gatherBeams, { cache: valueCache, beams }).y
  const scores = g.matmul('r h d, r s h d -> r h s', g.view(queryBias, 'b*w h d'), keyPast)
  const scaled = g.apply(scale, { x: g.view(scores, 'b*w*h s') }, { factor }).y
  const masked = g.apply(maskSteps, { x: g.view(scaled, 'b*w h s'), step }).y
  const probabilities = g.apply(softmax, { x: g.view(masked, 'b*w*h s') }).y
  const context = g.matmul('r h s, r s h d -> r h d', g.view(probabilities, 'b*w h s'), valuePast)
  const projection = g.matmul(linear, g.view(context, 'b*w h*d'), w.projectionWeight)
  const projectionBias = g.apply(addBias, { x: projection, bias: w.projectionBias }).y
  return {
    query,
    key,
    value,
    queryBias,
    keyBias,
    valueBias,
    keyCache,
    valueCache,
    keyPast,
    valuePast,
    scores,
    scaled,
    masked,
    probabilities,
    context,
    projection,
    projectionBias,
  }
}

/** Attention of each row to the memory of its sequence. The rows of a sequence are its queries. */
function crossAttention(
  g: GraphBuilder,
  x: GraphTensor,
  { memoryKeys, memoryValues, lengths }: Inputs,
  w: Weights,
  factor: AttrValue,
) {
  const crossQuery = g.matmul(linear, x, w.crossQueryWeight)
  const crossQueryBias = g.apply(addBias, { x: crossQuery, bias: w.crossQueryBias }).y
  const crossQueryHeads = g.apply(splitHeads, { x: g.view(crossQueryBias, 'b w h d') }).y
  const crossScores = g.matmul('b s h d, b t h d -> b h s t', crossQueryHeads, memoryKeys)
  const crossScaled = g.apply(scale, { x: g.view(crossScores, 'b*h*w t') }, { factor }).y
  const crossMasked = g.apply(maskScores, { x: g.view(crossScaled, 'b h w t'), lengths }).y
  const crossProbabilities = g.apply(softmax, { x: g.view(crossMasked, 'b*h*w t') }).y
  const crossWeights = g.view(crossProbabilities, 'b h w t')
  const crossContext = g.matmul('b h s t, b t h d -> b s h d', crossWeights, memoryValues, splitHeadsLayout)
  const crossMerged = g.apply(mergeHeads, { x: crossContext }).y
  const crossProjection = g.matmul(linear, g.view(crossMerged, 'b*w h*d'), w.crossProjectionWeight)
  const crossProjectionBias = g.apply(addBias, { x: crossProjection, bias: w.crossProjectionBias }).y
  return {
    crossQuery,
    crossQueryBias,
    crossQueryHeads,
    crossScores,
    crossScaled,
    crossMasked,
    crossProbabilities,
    crossContext,
    crossMerged,
    crossProjection,
    crossProjectionBias,
  }
}

/**
 * Builds the layer in the given form. Dims: b batch, w beams of a sequence, s positions of the cache, t positions of the memory, h heads, d headDim,
 * i inner. `step` is the position being decoded, at least 0 and below s. `keys` and `values` are the row's caches so far, and are returned with this
 * step's. `beams` has the row whose cache holds each position. `lengths` holds the valid positions of each memory, at least 1. Attributes: `scale` is
 * 1/sqrt(headDim), `eps` belongs to all norms.
 */
function decoderLayer(form: 'pre' | 'post', activation: Elementwise) {
  return graph(`decoder_layer_${form}_${activation.name}`, {
    inputs,
    weights,
    attrs: ['scale', 'eps'],
    typical: marianLayer,
    build: (g, handles, w, attrs) => {
      const norm = (x: GraphTensor, gamma: GraphTensor, beta: GraphTensor) =>
        g.apply(layerNorm, { x, gamma, beta }, { eps: attrs.eps }).y
      const residual = (x: GraphTensor, y: GraphTensor) => g.apply(add, { x, y }).z
      const { x } = handles
      if (form === 'pre') {
        const attentionNorm = norm(x, w.attentionGamma, w.attentionBeta)
        const own = selfAttention(g, attentionNorm, handles, w, attrs.scale)
        const attentionResidual = residual(own.projectionBias, x)
        const crossNorm = norm(attentionResidual, w.crossGamma, w.crossBeta)
        const cross = crossAttention(g, crossNorm, handles, w, attrs.scale)
        const crossResidual = residual(cross.crossProjectionBias, attentionResidual)
        const outputNorm = norm(crossResidual, w.outputGamma, w.outputBeta)
        const inner = innerNetwork(g, outputNorm, w, activation)
        const outputResidual = residual(inner.fc2Bias, crossResidual)
        const nodes = {
          attentionNorm,
          ...own,
          attentionResidual,
          crossNorm,
          ...cross,
          crossResidual,
          outputNorm,
          ...inner,
          outputResidual,
        }
        return { nodes, outputs: { hidden: outputResidual, keys: own.keyCache, values: own.valueCache } }
      }
      const own = selfAttention(g, x, handles, w, attrs.scale)
      const attentionResidual = residual(own.projectionBias, x)
      const attentionNorm = norm(attentionResidual, w.attentionGamma, w.attentionBeta)
      const cross = crossAttention(g, attentionNorm, handles, w, attrs.scale)
      const crossResidual = residual(cross.crossProjectionBias, attentionNorm)
      const crossNorm = norm(crossResidual, w.crossGamma, w.crossBeta)
      const inner = innerNetwork(g, crossNorm, w, activation)
      const outputResidual = residual(inner.fc2Bias, crossNorm)
      const outputNorm = norm(outputResidual, w.outputGamma, w.outputBeta)
      const nodes = {
        attentionNorm,
        ...own,
        attentionResidual,
        crossNorm,
        ...cross,
        crossResidual,
        outputNorm,
        ...inner,
        outputResidual,
      }
      return { nodes, outputs: { hidden: outputNorm, keys: own.keyCache, values: own.valueCache } }
    },
  })
}

/** One layer per form and activation. */
const layersOf = (form: 'pre' | 'post') => ({
  gelu: decoderLayer(form, gelu),
  gelu_tanh: decoderLayer(form, geluTanh),
  relu: decoderLayer(form, relu),
  silu: decoderLayer(form, silu),
})

export const decoderLayers = { pre: layersOf('pre'), post: layersOf('post') } as const
