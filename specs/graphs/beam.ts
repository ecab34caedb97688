/**
 * A step of beam search on the device, from the logits of all beams to the beams after it, by either rule. Rows of the decoder are
 * b*w + beam. Dims: v vocabulary, p parts of it (`beamParts` of src/models/beam_search.ts), k candidates of each part, e end ids, o = 1.
 */
import { graph, tensor } from 'heddle'
import { beamCandidates } from '../ops/beam_candidates.js'
import { beamSelect } from '../ops/beam_select.js'
import { beamSelectHf } from '../ops/beam_select_hf.js'

/** FasterTransformer's plain rule. */
export const beamStep = graph('beam_step', {
  inputs: {
    logits: tensor('T', 'b*w v'),
    cumulative: tensor('f32', 'b w'),
    finished: tensor('i32', 'b w'),
    ends: tensor('i32', 'e'),
  },
  weights: {},
  build: (g, { logits, cumulative, finished, ends }) => {
    const candidates = g.apply(beamCandidates, { logits }, {}, { p: 'p', k: 'k' })
    const selected = g.apply(beamSelect, {
      values: g.view(candidates.values, 'b w*p*k'),
      ids: g.view(candidates.ids, 'b w p k'),
      tops: g.view(candidates.tops, 'b w p'),
      sums: g.view(candidates.sums, 'b w p'),
      cumulative,
      finished,
      ends,
    })
    return { nodes: { candidates: candidates.values, selected: selected.words }, outputs: selected }
  },
})

/** The rule of Hugging Face's `generate`; attributes are those of the op. */
export const beamStepHf = graph('beam_step_hf', {
  inputs: {
    logits: tensor('T', 'b*w v'),
    cumulative: tensor('f32', 'b w'),
    poolScores: tensor('f32', 'b w'),
    poolSteps: tensor('i32', 'b w'),
    poolRows: tensor('i32', 'b w'),
    poolWords: tensor('i32', 'b w'),
    done: tensor('i32', 'b'),
    step: tensor('i32', 'o'),
    ends: tensor('i32', 'e'),
  },
  weights: {},
  attrs: ['lengthPenalty', 'earlyStopping', 'maxSteps'],
  build: (g, { logits, ...state }, _, attrs) => {
    const candidates = g.apply(beamCandidates, { logits }, {}, { p: 'p', k: 'k' })
    const selected = g.apply(
      beamSelectHf,
      {
        values: g.view(candidates.values, 'b w*p*k'),
        ids: g.view(candidates.ids, 'b w p k'),
        tops: g.view(candidates.tops, 'b w p'),
        sums: g.view(candidates.sums, 'b w p'),
        ...state,
      },
      attrs,
    )
    return { nodes: { candidates: candidates.values, selected: selected.words }, outputs: selected }
  },
})
