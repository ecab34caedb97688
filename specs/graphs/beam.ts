/**
 * A step of beam search on the device, from the logits of all beams to the next beams, by either rule. Rows of the decoder are b*w + beam. Dims: v
 * vocabulary, p parts of it (`beamParts` of src/models/decoding/beam_search.ts), k candidates of each part, e end ids, o = 1. Logits are float32 for
 * every storage type of a model: near ties decide which beams survive.
 */
import { type GraphBuilder, type GraphTensor, graph, tensor } from 'heddle'
import { beamCandidates } from '../ops/beam_candidates.js'
import { beamRank } from '../ops/beam_rank.js'
import { beamSelect } from '../ops/beam_select.js'
import { beamSelectDiverse } from '../ops/beam_select_diverse.js'
import { beamSelectHf } from '../ops/beam_select_hf.js'

/** Candidates of all beams, for both rules. */
function candidatesOf(g: GraphBuilder, logits: GraphTensor) {
  const { values, ids, tops, sums } = g.apply(beamCandidates, { logits }, {}, { p: 'p', k: 'k' })
  const bySequence = {
    values: g.view(values, 'b w*p*k'),
    ids: g.view(ids, 'b w p k'),
    tops: g.view(tops, 'b w p'),
    sums: g.view(sums, 'b w p'),
  }
  return { candidates: values, bySequence }
}

const plainInputs = {
  logits: tensor('f32', 'b*w v'),
  cumulative: tensor('f32', 'b*w'),
  finished: tensor('i32', 'b*w'),
  step: tensor('i32', '1'),
  ends: tensor('i32', 'e'),
} as const

/** Outputs of the plain rule, one row per beam. */
function plainOutputs(g: GraphBuilder, selected: { readonly [K in 'words' | 'parents' | 'scores' | 'ended']: GraphTensor }) {
  const rows = (x: GraphTensor): GraphTensor => g.view(x, 'b*w')
  return {
    words: rows(selected.words),
    parents: rows(selected.parents),
    cumulative: rows(selected.scores),
    finished: rows(selected.ended),
  }
}

/** FasterTransformer's plain rule. */
export const beamStep = graph('beam_step', {
  inputs: plainInputs,
  weights: {},
  attrs: ['maxSteps'],
  build: (g, { logits, cumulative, finished, step, ends }, _, attrs) => {
    const { candidates, bySequence } = candidatesOf(g, logits)
    const before = { cumulative: g.view(cumulative, 'b w'), finished: g.view(finished, 'b w') }
    const selected = g.apply(beamSelect, { ...bySequence, ...before, step, ends }, attrs)
    return { nodes: { candidates, selected: selected.words }, outputs: plainOutputs(g, selected) }
  },
})

/** The plain rule with a diversity rate. */
export const beamStepDiverse = graph('beam_step_diverse', {
  inputs: plainInputs,
  weights: {},
  attrs: ['diversityRate', 'maxSteps'],
  build: (g, { logits, cumulative, finished, step, ends }, _, attrs) => {
    const { values: candidates, ids, tops, sums } = g.apply(beamCandidates, { logits }, {}, { p: 'p', k: 'k' })
    const parts = { values: g.view(candidates, 'b*w p*k'), ids: g.view(ids, 'b*w p*k'), tops, sums }
    const { best, words, top, total } = g.apply(beamRank, parts, {}, { k: 'k' })
    const ranked = {
      values: g.view(best, 'b w*k'),
      ids: g.view(words, 'b w k'),
      tops: g.view(top, 'b w'),
      sums: g.view(total, 'b w'),
    }
    const before = { cumulative: g.view(cumulative, 'b w'), finished: g.view(finished, 'b w') }
    const selected = g.apply(beamSelectDiverse, { ...ranked, ...before, step, ends }, attrs)
    return { nodes: { candidates, ranked: best, selected: selected.words }, outputs: plainOutputs(g, selected) }
  },
})

/** The rule of Hugging Face's `generate`; attributes are those of the op. With `normalised`, logits are log-probabilities. */
export const beamStepHf = graph('beam_step_hf', {
  inputs: {
    logits: tensor('f32', 'b*w v'),
    cumulative: tensor('f32', 'b*w'),
    poolScores: tensor('f32', 'b w'),
    poolSteps: tensor('i32', 'b w'),
    poolRows: tensor('i32', 'b w'),
    poolWords: tensor('i32', 'b w'),
    finished: tensor('i32', 'b'),
    step: tensor('i32', '1'),
    ends: tensor('i32', 'e'),
  },
  weights: {},
  attrs: ['lengthPenalty', 'earlyStopping', 'maxSteps', 'normalised'],
  build: (g, { logits, cumulative, finished, ...state }, _, attrs) => {
    const { candidates, bySequence } = candidatesOf(g, logits)
    const before = { cumulative: g.view(cumulative, 'b w'), done: finished, ...state }
    const selected = g.apply(beamSelectHf, { ...bySequence, ...before }, attrs)
    const rows = (x: GraphTensor): GraphTensor => g.view(x, 'b*w')
    return {
      nodes: { candidates, selected: selected.words },
      outputs: {
        words: rows(selected.words),
        parents: rows(selected.parents),
        cumulative: rows(selected.scores),
        poolScores: selected.keptScores,
        poolSteps: selected.keptSteps,
        poolRows: selected.keptRows,
        poolWords: selected.keptWords,
        finished: selected.over,
      },
    }
  },
})
