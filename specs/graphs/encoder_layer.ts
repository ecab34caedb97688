/**
 * The encoder layer, post-LN: self-attention and a two-matmul inner network, each followed by bias, residual and layer norm (BERT,
 * Marian). Every primitive is a node of its own, so that fusion plans can group them in any legal way.
 */
import { graph, tensor } from 'heddle'
import { gelu, geluTanh, relu, silu } from '../ops/activations.js'
import { add } from '../ops/add.js'
import { layerNorm } from '../ops/layer_norm.js'
import { type Elementwise, encoderWeights, innerNetwork, selfAttention } from './encoder_parts.js'
import { bertLayer } from './typical.js'

/**
 * Builds the layer with the given activation in its inner network.
 * Dims: b batch, s seq, h heads, d headDim, i inner. `lengths` holds the valid tokens of each sequence; padded tokens are computed
 * and ignored. Attributes: `scale` is 1/sqrt(headDim), `eps` belongs to both layer norms.
 */
export function encoderLayer(activation: Elementwise) {
  return graph(`encoder_layer_${activation.name}`, {
    inputs: { x: tensor('T', 'b*s h*d'), lengths: tensor('i32', 'b') },
    weights: encoderWeights,
    attrs: ['scale', 'eps'],
    typical: bertLayer,
    build: (g, { x, lengths }, w, { scale, eps }) => {
      const attention = selfAttention(g, x, lengths, w, scale)
      const attentionResidual = g.apply(add, { x: attention.projectionBias, y: x }).z
      const attentionNorm = g.apply(
        layerNorm,
        { x: attentionResidual, gamma: w.attentionGamma, beta: w.attentionBeta },
        { eps },
      ).y
      const inner = innerNetwork(g, attentionNorm, w, activation)
      const outputResidual = g.apply(add, { x: inner.fc2Bias, y: attentionNorm }).z
      const outputNorm = g.apply(layerNorm, { x: outputResidual, gamma: w.outputGamma, beta: w.outputBeta }, { eps }).y
      const nodes = { ...attention, attentionResidual, attentionNorm, ...inner, outputResidual, outputNorm }
      return { nodes, outputs: { hidden: outputNorm } }
    },
  })
}

export const encoderLayerGelu = encoderLayer(gelu)
export const encoderLayerGeluTanh = encoderLayer(geluTanh)
export const encoderLayerRelu = encoderLayer(relu)
export const encoderLayerSilu = encoderLayer(silu)
