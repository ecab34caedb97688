/**
 * Parts of an encoder layer that do not depend on the position of its norms: self-attention and the two-matmul inner network, each up to the bias
 * before its residual. Every primitive is a node of its own, under the same name in every form of the layer.
 */
import { type AttrValue, type GraphBuilder, type GraphTensor, tensor } from 'heddle'
import { splitHeads as splitHeadsLayout } from '../layouts/split_heads.js'
import type { gelu } from '../ops/activations.js'
import { addBias } from '../ops/add_bias.js'
import { maskAdded } from '../ops/mask_added.js'
import { maskPairs } from '../ops/mask_pairs.js'
import { maskScores } from '../ops/mask_scores.js'
import { mergeHeads } from '../ops/merge_heads.js'
import { scale } from '../ops/scale.js'
import { softmax } from '../ops/softmax.js'
import { softmaxEps } from '../ops/softmax_eps.js'
import { splitHeads } from '../ops/split_heads.js'

/** Weights of a layer, stored as (out, in), as in checkpoints. */
export const encoderWeights = {
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

export type Weights = { readonly [K in keyof typeof encoderWeights]: GraphTensor }

/** An op that maps each element of an `m n` tensor, such as an activation. */
export type Elementwise = typeof gelu

const linear = 'm k, n k -> m n'

/** Hides scores 'b h s t' of excluded pairs. */
export type Mask = (g: GraphBuilder, scores: GraphTensor) => GraphTensor

/** Mask by length: every query attends to all keys that are not padding. */
export const byLengths =
  (lengths: GraphTensor): Mask =>
  (g, x) =>
    g.apply(maskScores, { x, lengths }).y

/** Mask by length and pair: a query attends those of them that a mask 'b s t' selects. */
export const byPairs =
  (lengths: GraphTensor, mask: GraphTensor): Mask =>
  (g, x) =>
    g.apply(maskPairs, { x, lengths, mask }).y

/** FasterTransformer's mask: `value` is added to the scores of excluded pairs. */
export const byAdding =
  (lengths: GraphTensor, mask: GraphTensor, value: AttrValue): Mask =>
  (g, x) =>
    g.apply(maskAdded, { x, lengths, mask }, { value }).y

/** Weights of keys from rows of their scores. */
type Weighing = (g: GraphBuilder, scores: GraphTensor) => GraphTensor

const bySum: Weighing = (g, x) => g.apply(softmax, { x }).y

/** FasterTransformer's softmax: `eps` is added to the sum. */
export const bySumAndEps =
  (eps: AttrValue): Weighing =>
  (g, x) =>
    g.apply(softmaxEps, { x }, { eps }).y

/** Attention of the tokens of each sequence to each other: x 'b*s h*d' to `projectionBias` 'b*s h*d'. */
export const selfAttention = (
  g: GraphBuilder,
  x: GraphTensor,
  mask: Mask,
  w: Weights,
  factor: AttrValue,
  weighing: Weighing = bySum,
) => attention(g, { x, memory: x, keys: 's', weighing }, mask, w, factor)

/** Query rows 'b*s h*d', and memory rows of the same width. Each sequence has `keys` memory rows. */
interface Attending {
  readonly x: GraphTensor
  readonly memory: GraphTensor
  readonly keys: string
  readonly weighing?: Weighing
}

/** Attention of the tokens of each sequence to those of another: x 'b*s h*d' to `projectionBias` 'b*s h*d'. */
export function attention(
  g: GraphBuilder,
  { x, memory, keys, weighing = bySum }: Attending,
  mask: Mask,
  w: Weights,
  factor: AttrValue,
) {
  const [queryRows, memoryRows, rows, pairs] = ['b s h d', `b ${keys} h d`, `b*h*s ${keys}`, `b h s ${keys}`]

  const query = g.matmul(linear, x, w.queryWeight)
  const key = g.matmul(linear, memory, w.keyWeight)
  const value = g.matmul(linear, memory, w.valueWeight)
  const queryBias = g.apply(addBias, { x: query, bias: w.queryBias }).y
  const keyBias = g.apply(addBias, { x: key, bias: w.keyBias }).y
  const valueBias = g.apply(addBias, { x: value, bias: w.valueBias }).y
  const queryHeads = g.apply(splitHeads, { x: g.view(queryBias, queryRows) }).y
  const keyHeads = g.apply(splitHeads, { x: g.view(keyBias, memoryRows) }).y
  const valueHeads = g.apply(splitHeads, { x: g.view(valueBias, memoryRows) }).y

  const scores = g.matmul('b s h d, b t h d -> b h s t', queryHeads, keyHeads)
  const scaled = g.apply(scale, { x: g.view(scores, rows) }, { factor }).y
  const masked = mask(g, g.view(scaled, pairs))
  const probabilities = weighing(g, g.view(masked, rows))
  const context = g.matmul('b h s t, b t h d -> b s h d', g.view(probabilities, pairs), valueHeads, splitHeadsLayout)
  const merged = g.apply(mergeHeads, { x: context }).y

  const projection = g.matmul(linear, g.view(merged, 'b*s h*d'), w.projectionWeight)
  const projectionBias = g.apply(addBias, { x: projection, bias: w.projectionBias }).y
  return {
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
  }
}

type InnerWeights = Pick<Weights, 'fc1Weight' | 'fc1Bias' | 'fc2Weight' | 'fc2Bias'>

/** Two matmuls around an activation, for each row of x 'm h*d' to `fc2Bias` 'm h*d'. */
export function innerNetwork(g: GraphBuilder, x: GraphTensor, w: InnerWeights, activation: Elementwise) {
  const fc1 = g.matmul(linear, x, w.fc1Weight)
  const fc1Bias = g.apply(addBias, { x: fc1, bias: w.fc1Bias }).y
  const fc1Activation = g.apply(activation, { x: fc1Bias }).y
  const fc2 = g.matmul(linear, fc1Activation, w.fc2Weight)
  const fc2Bias = g.apply(addBias, { x: fc2, bias: w.fc2Bias }).y
  return { fc1, fc1Bias, fc1Activation, fc2, fc2Bias }
}
