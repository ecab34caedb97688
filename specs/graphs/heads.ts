/** Heads of an encoder: a classifier for every token, the pooler, one row of each sequence, and the bare hidden states. */
import { graph, tensor } from 'heddle'
import { relu, tanh } from '../ops/activations.js'
import { addBias } from '../ops/add_bias.js'
import { argmaxRow } from '../ops/argmax.js'
import { castF32 } from '../ops/cast_f32.js'
import { firstToken } from '../ops/first_token.js'
import { attendedTokens, firstKept, lastKept, meanKept } from '../ops/kept_pooling.js'
import { lastToken, meanTokens, unitRows } from '../ops/pooling.js'
import type { Elementwise } from './encoder_parts.js'
import { bertRows } from './typical.js'

/** A linear classifier of every token: float32 logits, and the label with the largest. Dims: c classes. */
export const tokenClassifier = graph('token_classifier', {
  inputs: { x: tensor('T', 'b*s h*d') },
  weights: { weight: tensor('T', 'c h*d'), bias: tensor('T', 'c') },
  typical: { ...bertRows, c: 9 },
  build: (g, { x }, w) => {
    const classes = g.matmul('m k, n k -> m n', x, w.weight)
    const classesBias = g.apply(addBias, { x: classes, bias: w.bias }).y
    const logits = g.apply(castF32, { x: classesBias }).y
    const labels = g.apply(argmaxRow, { x: logits }).y
    return { nodes: { classes, classesBias, logits, labels }, outputs: { logits, labels } }
  },
})

/** Begin and end of an answer: float32 logits of every token. Dims: c = 2, begin and end. */
export const spanClassifier = graph('span_classifier', {
  inputs: { x: tensor('T', 'b*s h*d') },
  weights: { weight: tensor('T', 'c h*d'), bias: tensor('T', 'c') },
  typical: { ...bertRows, c: 2 },
  build: (g, { x }, w) => {
    const ends = g.matmul('m k, n k -> m n', x, w.weight)
    const endsBias = g.apply(addBias, { x: ends, bias: w.bias }).y
    const logits = g.apply(castF32, { x: endsBias }).y
    return { nodes: { ends, endsBias, logits }, outputs: { logits } }
  },
})

/**
 * A linear classifier of each sequence by its first token, after a dense layer and an activation: float32 logits, and the label with the largest.
 * Dims: c classes.
 */
const sequenceClassifier = (name: string, activation: Elementwise) =>
  graph(name, {
    inputs: { x: tensor('T', 'b*s h*d') },
    weights: {
      poolerWeight: tensor('T', 'h*d h*d'),
      poolerBias: tensor('T', 'h*d'),
      weight: tensor('T', 'c h*d'),
      bias: tensor('T', 'c'),
    },
    typical: { ...bertRows, c: 2 },
    build: (g, { x }, w) => {
      const first = g.apply(firstToken, { x: g.view(x, 'b s h*d') }).y
      const dense = g.matmul('m k, n k -> m n', first, w.poolerWeight)
      const denseBias = g.apply(addBias, { x: dense, bias: w.poolerBias }).y
      const pooled = g.apply(activation, { x: denseBias }).y
      const classes = g.matmul('m k, n k -> m n', pooled, w.weight)
      const classesBias = g.apply(addBias, { x: classes, bias: w.bias }).y
      const logits = g.apply(castF32, { x: classesBias }).y
      const labels = g.apply(argmaxRow, { x: logits }).y
      return { nodes: { first, dense, denseBias, pooled, classes, classesBias, logits, labels }, outputs: { logits, labels } }
    },
  })

/** By the activation after the dense layer: tanh in BERT, ReLU in DistilBERT. */
export const sequenceClassifiers = {
  tanh: sequenceClassifier('sequence_classifier', tanh),
  relu: sequenceClassifier('sequence_classifier_relu', relu),
} as const

/** BERT's pooler: a linear layer and tanh over the first token of each sequence. */
export const pooler = graph('pooler', {
  inputs: { x: tensor('T', 'b*s h*d') },
  weights: { weight: tensor('T', 'h*d h*d'), bias: tensor('T', 'h*d') },
  typical: bertRows,
  build: (g, { x }, w) => {
    const first = g.apply(firstToken, { x: g.view(x, 'b s h*d') }).y
    const dense = g.matmul('m k, n k -> m n', first, w.weight)
    const denseBias = g.apply(addBias, { x: dense, bias: w.bias }).y
    const activated = g.apply(tanh, { x: denseBias }).y
    const pooled = g.apply(castF32, { x: activated }).y
    return { nodes: { first, dense, denseBias, activated, pooled }, outputs: { pooled } }
  },
})

/** The last hidden state in float32. */
export const hiddenStates = graph('hidden_states', {
  inputs: { x: tensor('T', 'b*s h*d') },
  weights: {},
  typical: bertRows,
  build: (g, { x }) => {
    const states = g.apply(castF32, { x }).y
    return { nodes: { states }, outputs: { states } }
  },
})

/** The mean of each sequence's tokens in float32. */
export const meanPooling = graph('mean_pooling', {
  inputs: { x: tensor('T', 'b*s h*d'), lengths: tensor('i32', 'b') },
  weights: {},
  typical: bertRows,
  build: (g, { x, lengths }) => {
    const mean = g.apply(meanTokens, { x: g.view(x, 'b s h*d'), lengths }).y
    return { nodes: { mean }, outputs: { rows: mean } }
  },
})

/** The first token of each sequence in float32. */
export const firstPooling = graph('first_pooling', {
  inputs: { x: tensor('T', 'b*s h*d') },
  weights: {},
  typical: bertRows,
  build: (g, { x }) => {
    const first = g.apply(firstToken, { x: g.view(x, 'b s h*d') }).y
    const rows = g.apply(castF32, { x: first }).y
    return { nodes: { first, rows }, outputs: { rows } }
  },
})

/** The last token of each sequence in float32. */
export const lastPooling = graph('last_pooling', {
  inputs: { x: tensor('T', 'b*s h*d'), lengths: tensor('i32', 'b') },
  weights: {},
  typical: bertRows,
  build: (g, { x, lengths }) => {
    const last = g.apply(lastToken, { x: g.view(x, 'b s h*d'), lengths }).y
    const rows = g.apply(castF32, { x: last }).y
    return { nodes: { last, rows }, outputs: { rows } }
  },
})

const maskedRows = {
  inputs: { x: tensor('T', 'b*s h*d'), lengths: tensor('i32', 'b'), mask: tensor('bool', 'b s s') },
  weights: {},
  typical: bertRows,
} as const

/** The mean in float32 of the tokens of each sequence that some token attends under a mask of pairs. */
export const meanMaskedPooling = graph('mean_masked_pooling', {
  ...maskedRows,
  build: (g, { x, lengths, mask }) => {
    const kept = g.apply(attendedTokens, { lengths, mask }).y
    const mean = g.apply(meanKept, { x: g.view(x, 'b s h*d'), kept }).y
    return { nodes: { kept, mean }, outputs: { rows: mean } }
  },
})

/** The first token of each sequence that some token attends under a mask of pairs, in float32. */
export const firstMaskedPooling = graph('first_masked_pooling', {
  ...maskedRows,
  build: (g, { x, lengths, mask }) => {
    const kept = g.apply(attendedTokens, { lengths, mask }).y
    const first = g.apply(firstKept, { x: g.view(x, 'b s h*d'), kept }).y
    const rows = g.apply(castF32, { x: first }).y
    return { nodes: { kept, first, rows }, outputs: { rows } }
  },
})

/** The last token of each sequence that some token attends under a mask of pairs, in float32. */
export const lastMaskedPooling = graph('last_masked_pooling', {
  ...maskedRows,
  build: (g, { x, lengths, mask }) => {
    const kept = g.apply(attendedTokens, { lengths, mask }).y
    const last = g.apply(lastKept, { x: g.view(x, 'b s h*d'), kept }).y
    const rows = g.apply(castF32, { x: last }).y
    return { nodes: { kept, last, rows }, outputs: { rows } }
  },
})

/** Rows of length one: their dot products are cosines. */
export const unitLength = graph('unit_length', {
  inputs: { x: tensor('f32', 'b h*d') },
  weights: {},
  typical: { b: bertRows.b, h: bertRows.h, d: bertRows.d },
  build: (g, { x }) => {
    const unit = g.apply(unitRows, { x }).y
    return { nodes: { unit }, outputs: { rows: unit } }
  },
})
