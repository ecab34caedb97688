/** Graphs before and after the layers of the LLaMA family, and the state updates after a step of decoding. */
import { graph, tensor } from 'heddle'
import { followParents } from '../ops/beams.js'
import { castF32 } from '../ops/cast_f32.js'
import { embeddingLookup, wordLookup } from '../ops/embedding_lookup.js'
import { record, recordBeams } from '../ops/record.js'
import { rmsNorm } from '../ops/rms_norm.js'
import { nextBeamPlaces, nextPlaces, nextStep } from '../ops/steps.js'
import { tokenLoss } from '../ops/token_loss.js'
import { llamaPrompt, llamaStep, llamaVocab } from './typical.js'

/** Rows of the token embedding table. Dims: m tokens, n hidden, v vocab. */
export const llamaWords = graph('llama_words', {
  inputs: { ids: tensor('i32', 'm') },
  weights: { words: tensor('T', 'v n') },
  typical: { m: 8, n: llamaStep.n, v: llamaVocab },
  build: (g, { ids }, w) => {
    const words = g.apply(wordLookup, { ids, table: w.words }).y
    return { nodes: { words }, outputs: { hidden: words } }
  },
})

const head = { gamma: tensor('T', 'n'), weight: tensor('T', 'v n') } as const

/** Logits of every row, in float32 for every storage type: near ties decide which token is chosen. */
export const llamaHead = graph('llama_head', {
  inputs: { x: tensor('T', 'm n') },
  weights: head,
  attrs: ['eps'],
  typical: { m: 8, n: llamaStep.n, v: llamaVocab },
  build: (g, { x }, w, { eps }) => {
    const norm = g.apply(rmsNorm, { x, gamma: w.gamma }, { eps }).y
    const product = g.matmul('m k, n k -> m n', norm, w.weight)
    const logits = g.apply(castF32, { x: product }).y
    return { nodes: { norm, product, logits }, outputs: { logits } }
  },
})

/** Logits of some of many tokens: those of rows `wanted`. Dims: t tokens, k wanted ones. */
export const llamaSomeLogits = graph('llama_some_logits', {
  inputs: { x: tensor('T', 't n'), wanted: tensor('i32', 'k') },
  weights: head,
  attrs: ['eps'],
  typical: { t: llamaPrompt.t, k: 1, n: llamaStep.n, v: llamaVocab },
  build: (g, { x, wanted }, w, { eps }) => {
    const some = g.apply(embeddingLookup, { ids: wanted, table: x }).y
    const norm = g.apply(rmsNorm, { x: some, gamma: w.gamma }, { eps }).y
    const product = g.matmul('m k, n k -> m n', norm, w.weight)
    const logits = g.apply(castF32, { x: product }).y
    return { nodes: { some, norm, product, logits }, outputs: { logits } }
  },
})

/** Negative log-likelihood of the tokens after some of many tokens: of `targets(k)` after row `wanted(k)`. */
export const llamaLikelihood = graph('llama_likelihood', {
  inputs: { x: tensor('T', 't n'), wanted: tensor('i32', 'k'), targets: tensor('i32', 'k') },
  weights: head,
  attrs: ['eps'],
  typical: { t: llamaPrompt.t, k: llamaPrompt.t, n: llamaStep.n, v: llamaVocab },
  build: (g, { x, wanted, targets }, w, { eps }) => {
    const some = g.apply(embeddingLookup, { ids: wanted, table: x }).y
    const norm = g.apply(rmsNorm, { x: some, gamma: w.gamma }, { eps }).y
    const product = g.matmul('m k, n k -> m n', norm, w.weight)
    const logits = g.apply(castF32, { x: product }).y
    const losses = g.apply(tokenLoss, { logits, targets }).y
    return { nodes: { some, norm, product, logits, losses }, outputs: { losses } }
  },
})

/** Update after a choice of tokens: the tokens join the history, and every row that had not ended before advances by one position. */
export const keepTokens = graph('keep_tokens', {
  inputs: {
    words: tensor('i32', 'r'),
    step: tensor('i32', '1'),
    history: tensor('i32', 's r'),
    places: tensor('i32', 'r'),
    finished: tensor('i32', 'r'),
  },
  weights: {},
  build: (g, { words, step, history, places, finished }) => {
    const recorded = g.apply(record, { history, x: words, step }).y
    const next = g.apply(nextStep, { step }).y
    const ahead = g.apply(nextPlaces, { places, finished }).y
    return { nodes: { recorded, next, ahead }, outputs: { history: recorded, step: next, places: ahead } }
  },
})

/**
 * Update after a choice of beams: as `keepTokens`, and rows take over the past of their parents, which are recorded for tracing texts back. `slot` is
 * the position of this step's tokens in all caches. `beams` has the rows whose caches hold each row's past.
 */
export const keepBeamTokens = graph('keep_beam_tokens', {
  inputs: {
    words: tensor('i32', 'r'),
    chosenParents: tensor('i32', 'r'),
    step: tensor('i32', '1'),
    slot: tensor('i32', '1'),
    history: tensor('i32', 's r'),
    parents: tensor('i32', 's r'),
    beams: tensor('i32', 'r u'),
    places: tensor('i32', 'r'),
  },
  weights: {},
  attrs: ['maxSteps'],
  build: (g, { words, chosenParents, step, slot, history, parents, beams, places }, _, attrs) => {
    const made = { words: history, parents, word: words, parent: chosenParents, step }
    const { wordsAfter, parentsAfter } = g.apply(recordBeams, made)
    const followed = g.apply(followParents, { beams, parents: chosenParents, step: slot }).y
    const ahead = g.apply(nextBeamPlaces, { places, step }, attrs).y
    const next = g.apply(nextStep, { step }).y
    const nextSlot = g.apply(nextStep, { step: slot }).y
    const nodes = { recorded: wordsAfter, followed, ahead, next, nextSlot }
    const outputs = { history: wordsAfter, parents: parentsAfter, beams: followed, places: ahead, step: next, slot: nextSlot }
    return { nodes, outputs }
  },
})
