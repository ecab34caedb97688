/**
 * The encoder layer, pre-LN: what goes into self-attention and into the inner network is normalised, what comes out is added to the
 * residual as it is (Pegasus, OpenNMT). Its nodes and weights are those of the post-LN layer; only the norms stand elsewhere.
 */
import { graph, tensor } from 'heddle'
import { gelu, geluTanh, relu, silu } from '../ops/activations.js'
import { add } from '../ops/add.js'
import { layerNorm } from '../ops/layer_norm.js'
import { type Elementwise, encoderWeights, innerNetwork, selfAttention } from './encoder_parts.js'
import { bertLayer } from './typical.js'

/** Builds the layer. Dims, inputs and attributes are those of the post-LN layer. Its result is not normalised: see `finalNorm`. */
function encoderLayerPre(activation: Elementwise) {
  return graph(`encoder_layer_pre_${activation.name}`, {
    inputs: { x: tensor('T', 'b*s h*d'), lengths: tensor('i32', 'b') },
    weights: encoderWeights,
    attrs: ['scale', 'eps'],
    typical: bertLayer,
    build: (g, { x, lengths }, w, { scale, eps }) => {
      const attentionNorm = g.apply(layerNorm, { x, gamma: w.attentionGamma, beta: w.attentionBeta }, { eps }).y
      const attention = selfAttention(g, attentionNorm, lengths, w, scale)
      const attentionResidual = g.apply(add, { x: attention.projectionBias, y: x }).z
      const outputNorm = g.apply(layerNorm, { x: attentionResidual, gamma: w.outputGamma, beta: w.outputBeta }, { eps }).y
      const inner = innerNetwork(g, outputNorm, w, activation)
      const outputResidual = g.apply(add, { x: inner.fc2Bias, y: attentionResidual }).z
      const nodes = { attentionNorm, ...attention, attentionResidual, outputNorm, ...inner, outputResidual }
      return { nodes, outputs: { hidden: outputResidual } }
    },
  })
}

export const encoderLayerPreGelu = encoderLayerPre(gelu)
export const encoderLayerPreGeluTanh = encoderLayerPre(geluTanh)
export const encoderLayerPreRelu = encoderLayerPre(relu)
export const encoderLayerPreSilu = encoderLayerPre(silu)
