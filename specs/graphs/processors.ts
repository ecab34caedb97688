/**
 * Logits processors, as in Hugging Face's `generate`, and updates of their states. Logits are float32; for beams they may be log-probabilities. Dims:
 * r rows, v vocab, s positions of a row's text.
 */
import { graph, tensor } from 'heddle'
import { suppressEnds } from '../ops/ends.js'
import { forceWords } from '../ops/force_words.js'
import { logSoftmax } from '../ops/log_softmax.js'
import { banWords, followText, recordText, repeatedWords, residues } from '../ops/ngrams.js'
import { followSeen, markSeen, penalise } from '../ops/penalise.js'
import { nextStep } from '../ops/steps.js'

const logits = tensor('f32', 'r v')
const rows = tensor('i32', 'r')
const one = tensor('i32', 'o')

/** Log-probabilities. The rule of `generate` for beams changes these instead of logits. */
export const scoresStep = graph('scores_step', {
  inputs: { logits },
  weights: {},
  build: (g, given) => {
    const scores = g.apply(logSoftmax, { x: given.logits }).y
    return { nodes: { scores }, outputs: { logits: scores } }
  },
})

/** Logits with a penalty on seen tokens. */
export const penaltyStep = graph('penalty_step', {
  inputs: { logits, seen: tensor('i32', 'r v'), penalty: tensor('f32', 'r') },
  weights: {},
  build: (g, inputs) => {
    const penalised = g.apply(penalise, inputs).y
    return { nodes: { penalised }, outputs: { logits: penalised } }
  },
})

/** Logits without the tokens that would repeat `size` tokens of a row's text. */
export const ngramStep = graph('ngram_step', {
  inputs: { logits, text: tensor('i32', 'r s'), places: rows },
  weights: {},
  attrs: ['size'],
  build: (g, { text, places, ...given }, _, attrs) => {
    const repeated = g.apply(repeatedWords, { text, places }, attrs).y
    const among = g.apply(residues, { words: repeated, places }).y
    const left = g.apply(banWords, { ...given, words: repeated, places, among }).y
    return { nodes: { repeated, among, left }, outputs: { logits: left } }
  },
})

/** Logits without end ids in rows that may not end yet. */
export const minimumStep = graph('minimum_step', {
  inputs: {
    logits,
    step: one,
    minimum: rows,
    ends: tensor('i32', 'e'),
  },
  weights: {},
  build: (g, inputs) => {
    const open = g.apply(suppressEnds, inputs).y
    return { nodes: { open }, outputs: { logits: open } }
  },
})

/** Logits of forced tokens alone, in rows that have to begin or end with one. */
export const forcedStep = graph('forced_step', {
  inputs: {
    logits,
    step: one,
    first: rows,
    most: rows,
    last: tensor('i32', 'f'),
  },
  weights: {},
  build: (g, inputs) => {
    const forced = g.apply(forceWords, inputs).y
    return { nodes: { forced }, outputs: { logits: forced } }
  },
})

const words = { seen: tensor('i32', 'r v'), words: rows } as const
const texts = { text: tensor('i32', 'r s'), places: rows, words: rows } as const

/** Flags of seen tokens, with the chosen tokens added. */
export const keepSeen = graph('keep_seen', {
  inputs: words,
  weights: {},
  build: (g, inputs) => {
    const seen = g.apply(markSeen, inputs).y
    return { nodes: { seen }, outputs: { seen } }
  },
})

/** Flags of seen tokens for beams. */
export const keepBeamSeen = graph('keep_beam_seen', {
  inputs: { ...words, parents: rows },
  weights: {},
  build: (g, inputs) => {
    const seen = g.apply(followSeen, inputs).y
    return { nodes: { seen }, outputs: { seen } }
  },
})

/** Texts with the chosen tokens appended. */
export const keepText = graph('keep_text', {
  inputs: texts,
  weights: {},
  build: (g, inputs) => {
    const text = g.apply(recordText, inputs).y
    return { nodes: { text }, outputs: { text } }
  },
})

/** Texts of beams with the chosen tokens appended. */
export const keepBeamText = graph('keep_beam_text', {
  inputs: { ...texts, parents: rows },
  weights: {},
  build: (g, inputs) => {
    const text = g.apply(followText, inputs).y
    return { nodes: { text }, outputs: { text } }
  },
})

/** Positions of the last tokens, advanced by one, for steps without other counts per row. */
export const keepTextPlaces = graph('keep_text_places', {
  inputs: { places: rows },
  weights: {},
  build: (g, { places }) => {
    const next = g.apply(nextStep, { step: places }).y
    return { nodes: { next }, outputs: { places: next } }
  },
})
