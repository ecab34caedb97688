/**
 * BERT's encoder layer, post-LN: self-attention and a two-matmul inner network, each followed by bias, residual and layer norm.
 * Every primitive is a node of its own, so that fusion plans can group them in any legal way.
 */
import { graph, tensor } from 'heddle'
import { splitHeads as splitHeadsLayout } from '../layouts/split_heads.js'
import { gelu, geluTanh, relu } from '../ops/activations.js'
import { add } from '../ops/add.js'
import { addBias } from '../ops/add_bias.js'
import { layerNorm } from '../ops/layer_norm.js'
import { maskScores } from '../ops/mask_scores.js'
import { mergeHeads } from '../ops/merge_heads.js'
import { scale } from '../ops/scale.js'
import { softmax } from '../ops/softmax.js'
import { splitHeads } from '../ops/split_heads.js'

const weights = {
  queryWeight: tensor('T', 'h*d h*d'),
  queryBias: tensor('T', 'h*d'),
  keyWeight: tensor('T', 'h*d h*d'),
  keyBias: tensor('T', 'h*d'),
  valueWeight: tensor('T', 'h*d h*d'),
  valueBias: tensor('T', 'h*d'),
  projectionWeight: tensor('T', 'h*d h*d'),
  projectionBias: tensor('T', 'h*d'),
  attentionGamma: tensor('T', 'h*d'),
  attentionBeta: tensor('T', 'h*d'),
  fc1Weight: tensor('T', 'i h*d'),
  fc1Bias: tensor('T', 'i'),
  fc2Weight: tensor('T', 'h*d i'),
  fc2Bias: tensor('T', 'h*d'),
  outputGamma: tensor('T', 'h*d'),
  outputBeta: tensor('T', 'h*d'),
} as const

/** An op that maps each element of an `m n` tensor, such as an activation. */
type Elementwise = typeof gelu

/**
 * Builds the layer with the given activation in its inner network. Weights are stored as (out, in), as checkpoints have them.
 * Dims: b batch, s seq, h heads, d headDim, i inner. `lengths` holds the valid tokens of each sequence; padded tokens are computed
 * and ignored. Attributes: `scale` is 1/sqrt(headDim), `eps` belongs to both layer norms.
 */
export function encoderLayer(activation: Elementwise) {
  return graph(`encoder_layer_${activation.name}`, {
    inputs: { x: tensor('T', 'b*s h*d'), lengths: tensor('i32', 'b') },
    weights,
    attrs: ['scale', 'eps'],
    build: (g, { x, lengths }, w, attrs) => {
      const linear = 'm k, n k -> m n'
      const heads = 'b s h d'

      const query = g.matmul(linear, x, w.queryWeight)
      const key = g.matmul(linear, x, w.keyWeight)
      const value = g.matmul(linear, x, w.valueWeight)
      const queryBias = g.apply(addBias, { x: query, bias: w.queryBias }).y
      const keyBias = g.apply(addBias, { x: key, bias: w.keyBias }).y
      const valueBias = g.apply(addBias, { x: value, bias: w.valueBias }).y
      const queryHeads = g.apply(splitHeads, { x: g.view(queryBias, heads) }).y
      const keyHeads = g.apply(splitHeads, { x: g.view(keyBias, heads) }).y
      const valueHeads = g.apply(splitHeads, { x: g.view(valueBias, heads) }).y

      const scores = g.matmul('b s h d, b t h d -> b h s t', queryHeads, keyHeads)
      const scaled = g.apply(scale, { x: g.view(scores, 'b*h*s s') }, { factor: attrs.scale }).y
      const masked = g.apply(maskScores, { x: g.view(scaled, 'b h s s'), lengths }).y
      const probabilities = g.apply(softmax, { x: g.view(masked, 'b*h*s s') }).y
      const context = g.matmul('b h s t, b t h d -> b s h d', g.view(probabilities, 'b h s s'), valueHeads, splitHeadsLayout)
      const merged = g.apply(mergeHeads, { x: context }).y

      const projection = g.matmul(linear, g.view(merged, 'b*s h*d'), w.projectionWeight)
      const projectionBias = g.apply(addBias, { x: projection, bias: w.projectionBias }).y
      const attentionResidual = g.apply(add, { x: projectionBias, y: x }).z
      const attentionNorm = g.apply(
        layerNorm,
        { x: attentionResidual, gamma: w.attentionGamma, beta: w.attentionBeta },
        { eps: attrs.eps },
      ).y

      const fc1 = g.matmul(linear, attentionNorm, w.fc1Weight)
      const fc1Bias = g.apply(addBias, { x: fc1, bias: w.fc1Bias }).y
      const fc1Activation = g.apply(activation, { x: fc1Bias }).y
      const fc2 = g.matmul(linear, fc1Activation, w.fc2Weight)
      const fc2Bias = g.apply(addBias, { x: fc2, bias: w.fc2Bias }).y
      const outputResidual = g.apply(add, { x: fc2Bias, y: attentionNorm }).z
      const outputNorm = g.apply(layerNorm, { x: outputResidual, gamma: w.outputGamma, beta: w.outputBeta }, { eps: attrs.eps }).y

      return {
        nodes: {
          query,
          key,
          value,
          queryBias,
          keyBias,
          valueBias,
          queryHeads,
          keyHeads,
          valueHeads,
          scores,
          scaled,
          masked,
          probabilities,
          context,
          merged,
          projection,
          projectionBias,
          attentionResidual,
          attentionNorm,
          fc1,
          fc1Bias,
          fc1Activation,
          fc2,
          fc2Bias,
          outputResidual,
          outputNorm,
        },
        outputs: { hidden: outputNorm },
      }
    },
  })
}

export const encoderLayerGelu = encoderLayer(gelu)
export const encoderLayerGeluTanh = encoderLayer(geluTanh)
export const encoderLayerRelu = encoderLayer(relu)
