/**
 * The encoder layer, pre-LN: the inputs of self-attention and of the inner network are normalised, and their outputs are added to the residual
 * unchanged (Pegasus, OpenNMT). Its nodes and weights are those of the post-LN layer; only the norms are in other positions.
 */
import { type AttrValue, type GraphBuilder, type GraphTensor, graph, tensor } from 'heddle'
import { gelu, geluTanh, relu, silu } from '../ops/activations.js'
import { add } from '../ops/add.js'
import { layerNorm } from '../ops/layer_norm.js'
import {
  byLengths,
  byPairs,
  type Elementwise,
  encoderWeights,
  innerNetwork,
  type Mask,
  selfAttention,
  type Weights,
} from './encoder_parts.js'
import { bertLayer } from './typical.js'

type Attrs = Readonly<Record<'scale' | 'eps', AttrValue>>

function layer(g: GraphBuilder, x: GraphTensor, mask: Mask, w: Weights, { scale, eps }: Attrs, activation: Elementwise) {
  const attentionNorm = g.apply(layerNorm, { x, gamma: w.attentionGamma, beta: w.attentionBeta }, { eps }).y
  const attention = selfAttention(g, attentionNorm, mask, w, scale)
  const attentionResidual = g.apply(add, { x: attention.projectionBias, y: x }).z
  const outputNorm = g.apply(layerNorm, { x: attentionResidual, gamma: w.outputGamma, beta: w.outputBeta }, { eps }).y
  const inner = innerNetwork(g, outputNorm, w, activation)
  const outputResidual = g.apply(add, { x: inner.fc2Bias, y: attentionResidual }).z
  const nodes = { attentionNorm, ...attention, attentionResidual, outputNorm, ...inner, outputResidual }
  return { nodes, outputs: { hidden: outputResidual } }
}

const common = { weights: encoderWeights, attrs: ['scale', 'eps'], typical: bertLayer } as const
const inputs = { x: tensor('T', 'b*s h*d'), lengths: tensor('i32', 'b') }

/** Builds the layer. Dims, inputs and attributes are those of the post-LN layer. Its result is not normalised: see `finalNorm`. */
function encoderLayerPre(activation: Elementwise) {
  return graph(`encoder_layer_pre_${activation.name}`, {
    ...common,
    inputs,
    build: (g, { x, lengths }, w, attrs) => layer(g, x, byLengths(lengths), w, attrs, activation),
  })
}

/** The layer with a mask over pairs of tokens, as in the post-LN layer. */
function pairLayerPre(activation: Elementwise) {
  return graph(`encoder_layer_pre_${activation.name}_pairs`, {
    ...common,
    inputs: { ...inputs, mask: tensor('bool', 'b s s') },
    build: (g, { x, lengths, mask }, w, attrs) => layer(g, x, byPairs(lengths, mask), w, attrs, activation),
  })
}

export const encoderLayerPreGelu = encoderLayerPre(gelu)
export const encoderLayerPreGeluTanh = encoderLayerPre(geluTanh)
export const encoderLayerPreRelu = encoderLayerPre(relu)
export const encoderLayerPreSilu = encoderLayerPre(silu)

export const pairLayersPre = {
  gelu: pairLayerPre(gelu),
  gelu_tanh: pairLayerPre(geluTanh),
  relu: pairLayerPre(relu),
  silu: pairLayerPre(silu),
} as const
