/**
 * The encoder layer, post-LN: self-attention and a two-matmul inner network, each followed by bias, residual and layer norm (BERT, Marian). Every
 * primitive is a node of its own, so that fusion plans can group them in any legal way. A token attends all tokens of its sequence, those selected by
 * a mask, or the tokens of another sequence, depending on the form.
 */
import { type AttrValue, type GraphBuilder, type GraphTensor, graph, tensor } from 'heddle'
import { gelu, geluTanh, relu, silu } from '../ops/activations.js'
import { add } from '../ops/add.js'
import { layerNorm } from '../ops/layer_norm.js'
import {
  attention,
  byAdding,
  byLengths,
  byPairs,
  bySumAndEps,
  type Elementwise,
  encoderWeights,
  innerNetwork,
  selfAttention,
  type Weights,
} from './encoder_parts.js'
import { bertLayer } from './typical.js'

/** The layer after its attention. */
function afterAttention<Nodes extends Readonly<Record<string, GraphTensor>> & { readonly projectionBias: GraphTensor }>(
  g: GraphBuilder,
  x: GraphTensor,
  attending: Nodes,
  w: Weights,
  eps: AttrValue,
  activation: Elementwise,
) {
  const attentionResidual = g.apply(add, { x: attending.projectionBias, y: x }).z
  const attentionNorm = g.apply(layerNorm, { x: attentionResidual, gamma: w.attentionGamma, beta: w.attentionBeta }, { eps }).y
  const inner = innerNetwork(g, attentionNorm, w, activation)
  const outputResidual = g.apply(add, { x: inner.fc2Bias, y: attentionNorm }).z
  const outputNorm = g.apply(layerNorm, { x: outputResidual, gamma: w.outputGamma, beta: w.outputBeta }, { eps }).y
  const nodes = { ...attending, attentionResidual, attentionNorm, ...inner, outputResidual, outputNorm }
  return { nodes, outputs: { hidden: outputNorm } }
}

const common = { weights: encoderWeights, attrs: ['scale', 'eps'], typical: bertLayer } as const
const inputs = { x: tensor('T', 'b*s h*d'), lengths: tensor('i32', 'b') }

/**
 * Builds the layer with the given activation in its inner network.
 * Dims: b batch, s seq, h heads, d headDim, i inner. `lengths` holds the valid tokens of each sequence; padded tokens are computed
 * and ignored. Attributes: `scale` is 1/sqrt(headDim), `eps` belongs to both layer norms.
 */
export function encoderLayer(activation: Elementwise) {
  return graph(`encoder_layer_${activation.name}`, {
    ...common,
    inputs,
    build: (g, { x, lengths }, w, { scale, eps }) =>
      afterAttention(g, x, selfAttention(g, x, byLengths(lengths), w, scale), w, eps, activation),
  })
}

/** The layer with a mask over pairs of tokens: the token of row s attends that of column t where it is true. */
export function pairLayer(activation: Elementwise) {
  return graph(`encoder_layer_${activation.name}_pairs`, {
    ...common,
    inputs: { ...inputs, mask: tensor('bool', 'b s s') },
    build: (g, { x, lengths, mask }, w, { scale, eps }) =>
      afterAttention(g, x, selfAttention(g, x, byPairs(lengths, mask), w, scale), w, eps, activation),
  })
}

/**
 * The layer with FasterTransformer's arithmetic of masks: `maskValue`, -10000 there, is added to the scores of excluded pairs, and `softmaxEps`, 1e-6
 * there, to the denominator of the softmax. Tokens with a key get the same as in `pairLayer` up to `softmaxEps`; those without attend all of them.
 */
export function addedLayer(activation: Elementwise) {
  return graph(`encoder_layer_${activation.name}_added`, {
    ...common,
    attrs: ['scale', 'eps', 'maskValue', 'softmaxEps'],
    inputs: { ...inputs, mask: tensor('bool', 'b s s') },
    build: (g, { x, lengths, mask }, w, { scale, eps, maskValue, softmaxEps }) => {
      const attended = selfAttention(g, x, byAdding(lengths, mask, maskValue), w, scale, bySumAndEps(softmaxEps))
      return afterAttention(g, x, attended, w, eps, activation)
    },
  })
}

/**
 * The layer whose tokens attend those of another sequence, `memory`: n rows per sequence, of which the first `lengths` are not padding. The mask is
 * over pairs of a token and a memory row. FasterTransformer v1.0's encoder takes both sequences as `from_tensor` and `to_tensor`.
 */
export function memoryLayer(activation: Elementwise) {
  return graph(`encoder_layer_${activation.name}_memory`, {
    ...common,
    inputs: { ...inputs, memory: tensor('T', 'b*n h*d'), mask: tensor('bool', 'b s n') },
    typical: { ...bertLayer, n: bertLayer.s },
    build: (g, { x, memory, lengths, mask }, w, { scale, eps }) => {
      const attended = attention(g, { x, memory, keys: 'n' }, byPairs(lengths, mask), w, scale)
      return afterAttention(g, x, attended, w, eps, activation)
    },
  })
}

export const encoderLayerGelu = encoderLayer(gelu)
export const encoderLayerGeluTanh = encoderLayer(geluTanh)
export const encoderLayerRelu = encoderLayer(relu)
export const encoderLayerSilu = encoderLayer(silu)

export const pairLayers = {
  gelu: pairLayer(gelu),
  gelu_tanh: pairLayer(geluTanh),
  relu: pairLayer(relu),
  silu: pairLayer(silu),
} as const

export const addedLayers = {
  gelu: addedLayer(gelu),
  gelu_tanh: addedLayer(geluTanh),
  relu: addedLayer(relu),
  silu: addedLayer(silu),
} as const

export const memoryLayers = {
  gelu: memoryLayer(gelu),
  gelu_tanh: memoryLayer(geluTanh),
  relu: memoryLayer(relu),
  silu: memoryLayer(silu),
} as const
