/**
 * Decoding steps that choose the next token of each row from its logits. Logits are float32 for every storage type of a model, as the language model
 * heads return them.
 */
import { graph, tensor } from 'heddle'
import { beamCandidates } from '../ops/beam_candidates.js'
import { beamLoss } from '../ops/beam_loss.js'
import { recordNumbers } from '../ops/record.js'
import { peaks } from '../ops/row_parts.js'
import { greedy, greedyOfPeaks, sample } from '../ops/sample.js'
import { sampleCandidates } from '../ops/sample_candidates.js'
import { sampleNarrowed, sampleParts, weighParts } from '../ops/sample_parts.js'
import { wordLoss } from '../ops/token_loss.js'

const ending = {
  step: tensor('i32', 'o'),
  finished: tensor('i32', 'r'),
  limit: tensor('i32', 'r'),
  ends: tensor('i32', 'e'),
} as const

export const greedyStep = graph('greedy_step', {
  inputs: { logits: tensor('f32', 'r v'), ...ending },
  weights: {},
  build: (g, inputs) => {
    const { words, finishedAfter } = g.apply(greedy, inputs)
    return { nodes: { chosen: words }, outputs: { words, finished: finishedAfter } }
  },
})

/** Greedy choice by `p` parts of a row, since few rows of many tokens would leave a device idle. */
export const greedyPartsStep = graph('greedy_parts_step', {
  inputs: { logits: tensor('f32', 'r v'), ...ending },
  weights: {},
  build: (g, { logits, ...inputs }) => {
    const { tops, ids } = g.apply(peaks, { logits }, {}, { p: 'p' })
    const { words, finishedAfter } = g.apply(greedyOfPeaks, { tops, ids, ...inputs })
    return { nodes: { peaks: tops, chosen: words }, outputs: { words, finished: finishedAfter } }
  },
})

/** Further inputs of a draw. */
const drawn = { temperature: tensor('f32', 'r'), seedsLow: tensor('i32', 'r'), seedsHigh: tensor('i32', 'r') } as const
const request = { ...drawn, topK: tensor('i32', 'r'), topP: tensor('f32', 'r'), minP: tensor('f32', 'r') } as const

export const sampleStep = graph('sample_step', {
  inputs: { logits: tensor('f32', 'r v'), ...request, ...ending },
  weights: {},
  build: (g, inputs) => {
    const { words, finishedAfter } = g.apply(sample, inputs)
    return { nodes: { chosen: words }, outputs: { words, finished: finishedAfter } }
  },
})

/** A draw by `p` parts of a row, for draws without narrowing. */
export const samplePartsStep = graph('sample_parts_step', {
  inputs: { logits: tensor('f32', 'r v'), ...drawn, ...ending },
  weights: {},
  build: (g, { logits, ...inputs }) => {
    const { tops, ids, sums } = g.apply(weighParts, { logits, temperature: inputs.temperature }, {}, { p: 'p' })
    const { words, finishedAfter } = g.apply(sampleParts, { logits, tops, ids, sums, ...inputs })
    return { nodes: { weighed: sums, chosen: words }, outputs: { words, finished: finishedAfter } }
  },
})

/** A draw with any narrowing, among `k` candidates of each part if these include all remaining tokens. */
export const sampleNarrowedStep = graph('sample_narrowed_step', {
  inputs: { logits: tensor('f32', 'r v'), ...request, ...ending },
  weights: {},
  build: (g, { logits, ...inputs }) => {
    const { tops, ids, sums } = g.apply(weighParts, { logits, temperature: inputs.temperature }, {}, { p: 'p' })
    const { values } = g.apply(beamCandidates, { logits }, {}, { p: 'p', k: 'k' })
    const made = { logits, tops, ids, sums, values: g.view(values, 'r p*k'), ranked: values }
    const { words, finishedAfter } = g.apply(sampleNarrowed, { ...made, ...inputs })
    return { nodes: { weighed: sums, candidates: values, chosen: words }, outputs: { words, finished: finishedAfter } }
  },
})

/**
 * A draw with a top-k of at most `k`, a count kernels are compiled for: first candidates of `p` parts of a row, so that many multiprocessors read it.
 */
export const sampleTopStep = graph('sample_top_step', {
  inputs: { logits: tensor('f32', 'r v'), ...request, ...ending },
  weights: {},
  build: (g, { logits, topK, ...inputs }) => {
    const { values, ids } = g.apply(beamCandidates, { logits }, {}, { p: 'p', k: 'k' })
    const few = { values: g.view(values, 'r p*k'), ids }
    const { words, finishedAfter } = g.apply(sampleCandidates, { ...few, ...inputs, count: topK })
    return { nodes: { candidates: values, chosen: words }, outputs: { words, finished: finishedAfter } }
  },
})

/** Update after a choice of beams: the negative log-likelihood of each row's token, by the model's own logits of the row that it continues. */
export const keepBeamLosses = graph('keep_beam_losses', {
  inputs: {
    logits: tensor('f32', 'r v'),
    words: tensor('i32', 'r'),
    chosenParents: tensor('i32', 'r'),
    step: tensor('i32', 'o'),
    losses: tensor('f32', 's r'),
  },
  weights: {},
  build: (g, { logits, words, chosenParents, step, losses }) => {
    const lost = g.apply(beamLoss, { logits, words, parents: chosenParents }).y
    const recorded = g.apply(recordNumbers, { history: losses, x: lost, step }).y
    return { nodes: { lost, recorded }, outputs: { losses: recorded } }
  },
})

/** Update after a choice of tokens in the head: the losses of the tokens join those of earlier steps. */
export const recordLosses = graph('record_losses', {
  inputs: { loss: tensor('f32', 'r'), step: tensor('i32', 'o'), losses: tensor('f32', 's r') },
  weights: {},
  build: (g, { loss, step, losses }) => {
    const recorded = g.apply(recordNumbers, { history: losses, x: loss, step }).y
    return { nodes: { recorded }, outputs: { losses: recorded } }
  },
})

/** Update after a choice of tokens: the negative log-likelihood of each by the model's own logits joins those of earlier steps. */
export const keepLosses = graph('keep_losses', {
  inputs: {
    logits: tensor('f32', 'r v'),
    words: tensor('i32', 'r'),
    step: tensor('i32', 'o'),
    losses: tensor('f32', 's r'),
  },
  weights: {},
  build: (g, { logits, words, step, losses }) => {
    const lost = g.apply(wordLoss, { logits, words }).y
    const recorded = g.apply(recordNumbers, { history: losses, x: lost, step }).y
    return { nodes: { lost, recorded }, outputs: { losses: recorded } }
  },
})
