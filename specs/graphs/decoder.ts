/** Graphs before and after the decoder's layers in a step: the embedding of the tokens just chosen, and the logits of the next. */
import { graph, tensor } from 'heddle'
import { addBias } from '../ops/add_bias.js'
import { followParents } from '../ops/beams.js'
import { castF32 } from '../ops/cast_f32.js'
import { wordLookup } from '../ops/embedding_lookup.js'
import { layerNorm } from '../ops/layer_norm.js'
import { record, recordBeams } from '../ops/record.js'
import { scale } from '../ops/scale.js'
import { addStepPosition, nextStep } from '../ops/steps.js'
import { marianRows, marianVocab } from './typical.js'

/** Tokens, scaled by `factor`, and the position of the step. Dims: b batch, w beams, h heads, d headDim, v vocab, u positions. */
export const embedStep = graph('embed_step', {
  inputs: { ids: tensor('i32', 'b*w'), step: tensor('i32', '1') },
  weights: { words: tensor('T', 'v h*d'), positions: tensor('T', 'u h*d') },
  attrs: ['factor'],
  typical: { ...marianRows, v: marianVocab, u: 512 },
  build: (g, { ids, step }, w, { factor }) => {
    const words = g.apply(wordLookup, { ids, table: w.words }).y
    const scaled = g.apply(scale, { x: words }, { factor }).y
    const placed = g.apply(addStepPosition, { x: scaled, table: w.positions, step }).y
    return { nodes: { words, scaled, placed }, outputs: { hidden: placed } }
  },
})

/** The norm after the last layer of a pre-LN decoder. */
export const decoderNorm = graph('decoder_norm', {
  inputs: { x: tensor('T', 'b*w h*d') },
  weights: { gamma: tensor('T', 'h*d'), beta: tensor('T', 'h*d') },
  attrs: ['eps'],
  typical: marianRows,
  build: (g, { x }, w, { eps }) => {
    const norm = g.apply(layerNorm, { x, gamma: w.gamma, beta: w.beta }, { eps }).y
    return { nodes: { norm }, outputs: { hidden: norm } }
  },
})

/** Logits in float32 for every storage type: near ties decide which beams survive. */
export const languageModelHead = graph('language_model_head', {
  inputs: { x: tensor('T', 'b*w h*d') },
  weights: { weight: tensor('T', 'v h*d') },
  build: (g, { x }, w) => {
    const product = g.matmul('m k, n k -> m n', x, w.weight)
    const logits = g.apply(castF32, { x: product }).y
    return { nodes: { product, logits }, outputs: { logits } }
  },
})

export const biasedLanguageModelHead = graph('biased_language_model_head', {
  inputs: { x: tensor('T', 'b*w h*d') },
  weights: { weight: tensor('T', 'v h*d'), bias: tensor('T', 'v') },
  build: (g, { x }, w) => {
    const product = g.matmul('m k, n k -> m n', x, w.weight)
    const biased = g.apply(addBias, { x: product, bias: w.bias }).y
    const logits = g.apply(castF32, { x: biased }).y
    return { nodes: { product, biased, logits }, outputs: { logits } }
  },
})

const chosen = { words: tensor('i32', 'b*w'), step: tensor('i32', '1') } as const

/** Update after a choice of tokens: the tokens join the history, and decoding advances by one step. Dims: s capacity in steps. */
export const keepWords = graph('keep_words', {
  inputs: { ...chosen, history: tensor('i32', 's b*w') },
  weights: {},
  build: (g, { words, step, history }) => {
    const recorded = g.apply(record, { history, x: words, step }).y
    const next = g.apply(nextStep, { step }).y
    return { nodes: { recorded, next }, outputs: { history: recorded, step: next } }
  },
})

/** Update after a choice of beams: as `keepWords`, and rows take over the past of their parents, which are recorded for tracing texts back. */
export const keepBeams = graph('keep_beams', {
  inputs: {
    ...chosen,
    history: tensor('i32', 's b*w'),
    chosenParents: tensor('i32', 'b*w'),
    parents: tensor('i32', 's b*w'),
    beams: tensor('i32', 'b*w s'),
  },
  weights: {},
  build: (g, { words, step, history, chosenParents, parents, beams }) => {
    const made = { words: history, parents, word: words, parent: chosenParents, step }
    const { wordsAfter, parentsAfter } = g.apply(recordBeams, made)
    const followed = g.apply(followParents, { beams, parents: chosenParents, step }).y
    const next = g.apply(nextStep, { step }).y
    const nodes = { recorded: wordsAfter, followed, next }
    return { nodes, outputs: { history: wordsAfter, parents: parentsAfter, beams: followed, step: next } }
  },
})
