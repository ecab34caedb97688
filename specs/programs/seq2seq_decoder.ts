/**
 * The decoder of an encoder-decoder model: a sequence of its steps. Caches, tokens and counters are state, passed from step to step. Dims: b batch, w
 * beams of a sequence, s positions of the caches, t of the memory, h heads, d headDim, i inner, v vocab, u positions, e end ids, f ids that texts are
 * forced to end with, x ids that are never chosen, p parts of a row of logits, k candidates of each.
 */
import { type Programming, type ProgramResult, type ProgramTensor, program, tensor } from 'heddle'
import { beamStep, beamStepDiverse, beamStepHf } from '../graphs/beam.js'
import { biasedLanguageModelHead, decoderNorm, embedStep, keepBeams, keepWords, languageModelHead } from '../graphs/decoder.js'
import { decoderLayers } from '../graphs/decoder_layer.js'
import { greedyHeads } from '../graphs/greedy_heads.js'
import { greedyStep, keepBeamLosses, keepLosses, recordLosses, sampleStep, sampleTopStep } from '../graphs/sampling.js'
import { splitHeads } from '../layouts/split_heads.js'
import { changesAny, keptWords, noProcessors, type Processors, processed, processedBeams, processorStates } from './processors.js'
import { memoryStates } from './seq2seq_encoder.js'
import { at, pick, type Values } from './values.js'

/** Choice of tokens: the likeliest, drawn from all or from a top-k, or by one of two rules of beam search. */
type Choice =
  | { readonly kind: 'greedy' | 'sample' | 'sample_top' }
  /** With a diversity rate other than 0, tokens are also compared by the number of better tokens of their beam. */
  | { readonly kind: 'beams'; readonly maxSteps: number; readonly diversityRate: number }
  | { readonly kind: 'beams_hf'; readonly maxSteps: number; readonly lengthPenalty: number; readonly earlyStopping: number }

export interface Seq2seqDecoderProgram {
  /** Steps of a run. */
  readonly steps: number
  readonly layers: number
  readonly activation: keyof typeof decoderLayers.pre
  readonly preNorm: boolean
  readonly finalNorm: boolean
  /** True if logits have a bias. */
  readonly headBias: boolean
  readonly eps: number
  readonly scale: number
  readonly factor: number
  readonly choice: Choice
  /** Logits processors. */
  readonly processors: Processors
  /** Keeps the loss of each token. */
  readonly losses: boolean
}

const config: Seq2seqDecoderProgram = {
  steps: 1,
  layers: 6,
  activation: 'silu',
  preNorm: false,
  finalNorm: false,
  headBias: true,
  eps: 1e-5,
  scale: 1 / 8,
  factor: 1,
  choice: { kind: 'greedy' },
  processors: noProcessors,
  losses: false,
}

/** The caches of a layer. */
const caches = (layer: number) => ({ keys: `keys${layer}`, values: `values${layer}` })

const rows = { i32: tensor('i32', 'b*w'), f32: tensor('f32', 'b*w') } as const
const pool = {
  poolScores: tensor('f32', 'b w'),
  poolSteps: tensor('i32', 'b w'),
  poolRows: tensor('i32', 'b w'),
  poolWords: tensor('i32', 'b w'),
} as const
const request = {
  temperature: rows.f32,
  topK: rows.i32,
  topP: rows.f32,
  minP: rows.f32,
  seedsLow: rows.i32,
  seedsHigh: rows.i32,
} as const

/** One step per token after the start token, which is at position 0. */
const counted = false
const dims = { rows: 'b*w', places: 's', banned: 'x', forced: 'f', counted } as const

/** States that steps change, and states that they only read. Those that are set before the first step come first, contiguously. */
function states(
  p: Programming,
  { layers, choice, processors, losses }: Seq2seqDecoderProgram,
): { readonly carried: Values; readonly fixed: Values } {
  const carried: Record<string, ProgramTensor> = {}
  const fixed: Record<string, ProgramTensor> = {}
  const beams = choice.kind === 'beams' || choice.kind === 'beams_hf'
  carried.step = p.state('step', tensor('i32', '1'))
  carried.words = p.state('words', rows.i32)
  carried.finished = p.state('finished', choice.kind === 'beams_hf' ? tensor('i32', 'b') : rows.i32)
  const table = p.state('beams', tensor('i32', 'b*w s'))
  if (beams) carried.beams = table
  else fixed.beams = table
  fixed.lengths = p.state('lengths', tensor('i32', 'b'))
  fixed.ends = p.state('ends', tensor('i32', 'e'))
  if (beams) carried.cumulative = p.state('cumulative', rows.f32)
  if (choice.kind === 'beams_hf') for (const [name, decl] of Object.entries(pool)) carried[name] = p.state(name, decl)
  if (choice.kind === 'greedy' || choice.kind === 'sample' || choice.kind === 'sample_top') {
    fixed.limit = p.state('limit', rows.i32)
    if (choice.kind !== 'greedy') for (const [name, decl] of Object.entries(request)) fixed[name] = p.state(name, decl)
  }
  const changing = processorStates(p, processors, dims)
  Object.assign(carried, changing.carried)
  Object.assign(fixed, changing.fixed)
  carried.history = p.state('history', tensor('i32', 's b*w'))
  if (losses) carried.losses = p.state('losses', tensor('f32', 's b*w'))
  if (beams) carried.parents = p.state('parents', tensor('i32', 's b*w'))
  // Attention that is not fused also reads positions beyond the step, with weight zero, so they must hold numbers.
  const cleared = { cleared: true }
  for (let layer = 0; layer < layers; layer++) {
    for (const name of Object.values(caches(layer))) carried[name] = p.state(name, tensor('T', 'b*w s h d', splitHeads), cleared)
    for (const name of Object.values(memoryStates(layer)))
      fixed[name] = p.state(name, tensor('T', 'b t h d', splitHeads), cleared)
  }
  return { carried, fixed }
}

/** Computes the tokens of the next step in the head, which then stores no logits: nothing else reads them. */
function chooseInHead(p: Programming, x: ProgramResult, now: Values, fixed: Values, settings: Seq2seqDecoderProgram): Values {
  const inputs = { x, ...pick(now, ['step', 'finished']), ...pick(fixed, ['ends', 'limit']) }
  const form = settings.headBias ? 'biased' : 'decoder'
  const [weights, label] = [p.weights('head'), { label: 'head' }]
  const kept = (words: ProgramResult) =>
    p.apply(keepWords, { ...pick(now, ['step', 'history']), words }, {}, {}, { label: 'keep' })
  if (!settings.losses) {
    const chosen = p.apply(greedyHeads.words[form], inputs, weights, {}, label)
    return { ...chosen, ...kept(chosen.words) }
  }
  const { loss, ...chosen } = p.apply(greedyHeads.losses[form], inputs, weights, {}, label)
  const lost = { loss, step: at(now, 'step'), losses: at(now, 'losses') }
  return { ...chosen, ...p.apply(recordLosses, lost, {}, {}, { label: 'losses' }), ...kept(chosen.words) }
}

/** Computes the tokens of the next step, and the states that depend on them. */
function choose(p: Programming, now: Values, fixed: Values, given: ProgramResult, settings: Seq2seqDecoderProgram): Values {
  const { choice, processors } = settings
  const common = { ...pick(now, ['step', 'finished']), ends: at(fixed, 'ends') }
  const values = { now, fixed }
  if (choice.kind === 'beams' || choice.kind === 'beams_hf') {
    const label = { label: 'beams' }
    const hf = choice.kind === 'beams_hf'
    const { logits, normalised } = processedBeams(p, given, values, { processors, rule: hf ? 'hf' : 'plain' })
    const inputs = { logits, cumulative: at(now, 'cumulative'), ...common }
    const pooled = pick(now, choice.kind === 'beams' ? [] : ['poolScores', 'poolSteps', 'poolRows', 'poolWords'])
    const { parents, ...chosen } =
      choice.kind === 'beams'
        ? choice.diversityRate === 0
          ? p.apply(beamStep, inputs, {}, { maxSteps: choice.maxSteps }, label)
          : p.apply(beamStepDiverse, inputs, {}, { maxSteps: choice.maxSteps, diversityRate: choice.diversityRate }, label)
        : p.apply(beamStepHf, { ...inputs, ...pooled }, {}, { ...rule(choice), normalised }, label)
    const before = { ...pick(now, ['step', 'history', 'parents', 'beams']), words: chosen.words, chosenParents: parents }
    const kept = keptWords(p, now, { words: chosen.words, parents }, { processors, counted })
    const lost = { logits: given, ...pick(before, ['words', 'chosenParents', 'step']) }
    const losses = settings.losses
      ? p.apply(keepBeamLosses, { ...lost, losses: at(now, 'losses') }, {}, {}, { label: 'losses' })
      : {}
    return { ...chosen, ...kept, ...losses, ...p.apply(keepBeams, before, {}, {}, { label: 'keep' }) }
  }
  const logits = processed(p, given, values, processors)
  const inputs = { logits, ...common, limit: at(fixed, 'limit') }
  const label = { label: 'choose' }
  const names = ['temperature', 'topK', 'topP', 'minP', 'seedsLow', 'seedsHigh'] as const
  const chosen =
    choice.kind === 'greedy'
      ? p.apply(greedyStep, inputs, {}, {}, label)
      : p.apply(choice.kind === 'sample' ? sampleStep : sampleTopStep, { ...inputs, ...pick(fixed, names) }, {}, {}, label)
  const before = { ...pick(now, ['step', 'history']), words: chosen.words }
  const kept = keptWords(p, now, { words: chosen.words }, { processors, counted })
  const lost = { logits: given, words: chosen.words, step: common.step }
  const losses = settings.losses ? p.apply(keepLosses, { ...lost, losses: at(now, 'losses') }, {}, {}, { label: 'losses' }) : {}
  return { ...chosen, ...kept, ...losses, ...p.apply(keepWords, before, {}, {}, { label: 'keep' }) }
}

const rule = ({ lengthPenalty, earlyStopping, maxSteps }: Extract<Choice, { kind: 'beams_hf' }>) => ({
  lengthPenalty,
  earlyStopping,
  maxSteps,
})

export const seq2seqDecoder = program('seq2seq_decoder', {
  dims: { b: 8, w: 4, s: 128, t: 128, h: 8, d: 64, i: 2048, v: 58_101, u: 512, e: 1, f: 1, x: 1, p: 29, k: 4 },
  config,
  inputs: {},
  build: (p, _, settings) => {
    const { steps, layers, activation, preNorm, eps, scale, factor } = settings
    const { carried, fixed } = states(p, settings)
    const layerGraph = decoderLayers[preNorm ? 'pre' : 'post'][activation]
    const last = p.steps('step', steps, carried, (now) => {
      const next: Record<string, ProgramTensor> = { ...now }
      const words = { ids: at(now, 'words'), step: at(now, 'step') }
      const embedded = p.apply(embedStep, words, p.weights('embeddings'), { factor }, { label: 'embed' })
      const stacked = p.repeat('layer', layers, embedded.hidden, (x, { index, weights }) => {
        const [names, memory] = [caches(index), memoryStates(index)]
        const inputs = {
          x,
          step: at(now, 'step'),
          beams: at(now.beams === undefined ? fixed : now, 'beams'),
          keys: at(now, names.keys),
          values: at(now, names.values),
          memoryKeys: at(fixed, memory.keys),
          memoryValues: at(fixed, memory.values),
          lengths: at(fixed, 'lengths'),
        }
        const made = p.apply(layerGraph, inputs, weights, { eps, scale })
        next[names.keys] = made.keys
        next[names.values] = made.values
        return made.hidden
      })
      const x = settings.finalNorm
        ? p.apply(decoderNorm, { x: stacked }, p.weights('norm'), { eps }, { label: 'norm' }).hidden
        : stacked
      if (settings.choice.kind === 'greedy' && !changesAny(settings.processors))
        return { ...next, ...chooseInHead(p, x, now, fixed, settings) }
      const head = settings.headBias
        ? p.apply(biasedLanguageModelHead, { x }, p.weights('head'), {}, { label: 'head' })
        : p.apply(languageModelHead, { x }, p.weights('head'), {}, { label: 'head' })
      return { ...next, ...choose(p, now, fixed, head.logits, settings) }
    })
    for (const [name, state] of Object.entries(carried)) p.next(state, at(last, name))
    return {}
  },
})
