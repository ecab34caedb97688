/**
 * The LLaMA family choosing tokens: some steps, each of one token per row. A step writes the row's last token into its cache, at the row's own
 * position, and chooses the next token. Caches, tokens, positions and counters are state, passed from step to step. Rows may be at different
 * positions. Dims: r rows, u positions of their caches, s capacity in steps, n hidden, h heads, g heads of keys and values, d headDim, i inner, v
 * vocab, p positions and e pairs of the rotation's tables, f end ids, x tokens that are never chosen, y tokens that texts are forced to end with, q
 * parts of a row of logits, k candidates of each.
 */
import { type Programming, type ProgramResult, type ProgramTensor, program, tensor } from 'heddle'
import { greedyHeads } from '../graphs/greedy_heads.js'
import { keepTokens, llamaHead, llamaWords } from '../graphs/llama_ends.js'
import {
  greedyPartsStep,
  keepLosses,
  recordLosses,
  sampleNarrowedStep,
  samplePartsStep,
  sampleTopStep,
} from '../graphs/sampling.js'
import { cacheStates, type LlamaProgram, llamaConfig, llamaSizes, llamaStack } from './llama.js'
import { changesAny, keptWords, noProcessors, type Processors, processed, processorStates } from './processors.js'
import { at, pick, type Values } from './values.js'

export interface LlamaStepProgram extends LlamaProgram {
  /** Steps of a run. */
  readonly steps: number
  /** Choice of tokens: the likeliest, or drawn from all, from a narrowed set, or from a top-k. */
  readonly choice: 'greedy' | 'sample' | 'sample_narrowed' | 'sample_top'
  /** Logits processors. */
  readonly processors: Processors
  /** Keeps the loss of each token. */
  readonly losses: boolean
}

const config: LlamaStepProgram = { ...llamaConfig, steps: 1, choice: 'greedy', processors: noProcessors, losses: false }

const rows = { i32: tensor('i32', 'r'), f32: tensor('f32', 'r') } as const
const request = {
  temperature: rows.f32,
  topK: rows.i32,
  topP: rows.f32,
  minP: rows.f32,
  seedsLow: rows.i32,
  seedsHigh: rows.i32,
} as const

/** States that steps change, and states that they only read. */
function states(p: Programming, settings: LlamaStepProgram) {
  const { choice, processors } = settings
  const carried: Record<string, ProgramTensor> = {
    step: p.state('step', tensor('i32', '1')),
    words: p.state('words', rows.i32),
    places: p.state('places', rows.i32),
    finished: p.state('finished', rows.i32),
  }
  const fixed: Record<string, ProgramTensor> = {
    ends: p.state('ends', tensor('i32', 'f')),
    limit: p.state('limit', rows.i32),
  }
  const changing = processorStates(p, processors, { rows: 'r', places: 'u', banned: 'x', forced: 'y', counted: true })
  Object.assign(carried, changing.carried)
  Object.assign(fixed, changing.fixed)
  if (choice !== 'greedy') for (const [name, decl] of Object.entries(request)) fixed[name] = p.state(name, decl)
  carried.history = p.state('history', tensor('i32', 's r'))
  if (settings.losses) carried.losses = p.state('losses', tensor('f32', 's r'))
  return { carried, fixed, caches: cacheStates(p, settings) }
}

/** Logits, and the inputs that end a row. */
type Logits = Readonly<Record<'logits' | 'step' | 'finished' | 'ends' | 'limit', ProgramResult>>

/** Chooses tokens from logits. Parts of a row are processed separately, since few rows of so many tokens leave a device idle. */
function chosenBy(p: Programming, choice: LlamaStepProgram['choice'], inputs: Logits, fixed: Values) {
  const about = { label: 'choose', dims: { p: 'q' } }
  if (choice === 'greedy') return p.apply(greedyPartsStep, inputs, {}, {}, about)
  const draws = pick(fixed, ['temperature', 'seedsLow', 'seedsHigh'])
  if (choice === 'sample') return p.apply(samplePartsStep, { ...inputs, ...draws }, {}, {}, about)
  const narrowed = { ...inputs, ...draws, ...pick(fixed, ['topK', 'topP', 'minP']) }
  return p.apply(choice === 'sample_narrowed' ? sampleNarrowedStep : sampleTopStep, narrowed, {}, {}, about)
}

/** Computes the tokens of the next step in the head, which then stores no logits: nothing else reads them. */
function chooseInHead(p: Programming, x: ProgramResult, now: Values, fixed: Values, { losses, eps }: LlamaStepProgram): Values {
  const inputs = { x, ...pick(now, ['step', 'finished']), ...pick(fixed, ['ends', 'limit']) }
  const [weights, label] = [p.weights('head'), { label: 'head' }]
  const kept = (words: ProgramResult) => {
    const before = { ...pick(now, ['step', 'history', 'places', 'finished']), words }
    return p.apply(keepTokens, before, {}, {}, { label: 'keep' })
  }
  if (!losses) {
    const chosen = p.apply(greedyHeads.words.llama, inputs, weights, { eps }, label)
    return { ...chosen, ...kept(chosen.words) }
  }
  const { loss, ...chosen } = p.apply(greedyHeads.losses.llama, inputs, weights, { eps }, label)
  const lost = { loss, step: at(now, 'step'), losses: at(now, 'losses') }
  return { ...chosen, ...p.apply(recordLosses, lost, {}, {}, { label: 'losses' }), ...kept(chosen.words) }
}

/** Computes the tokens of the next step. */
function choose(p: Programming, now: Values, fixed: Values, given: ProgramResult, settings: LlamaStepProgram): Values {
  const common = { ...pick(now, ['step', 'finished']), ...pick(fixed, ['ends', 'limit']) }
  const { processors } = settings
  const logits = processed(p, given, { now, fixed }, processors)
  const chosen = chosenBy(p, settings.choice, { logits, ...common }, fixed)
  const before = { ...pick(now, ['step', 'history', 'places', 'finished']), words: chosen.words }
  const kept = keptWords(p, now, { words: chosen.words }, { processors, counted: true })
  const lost = { logits: given, words: chosen.words, step: common.step }
  const losses = settings.losses ? p.apply(keepLosses, { ...lost, losses: at(now, 'losses') }, {}, {}, { label: 'losses' }) : {}
  return { ...chosen, ...kept, ...losses, ...p.apply(keepTokens, before, {}, {}, { label: 'keep' }) }
}

export const llamaStep = program('llama_step', {
  dims: { ...llamaSizes, s: 128, f: 1, x: 1, y: 1, q: 63, k: 4 },
  config,
  inputs: {},
  build: (p, _, settings) => {
    const { carried, fixed, caches } = states(p, settings)
    const all = { ...carried, ...caches }
    const last = p.steps('step', settings.steps, all, (now: Values) => {
      const words = p.apply(llamaWords, { ids: at(now, 'words') }, p.weights('embeddings'), {}, { label: 'embed' }).hidden
      const made = llamaStack(p, 'step', words, now, { places: at(now, 'places') }, settings)
      if (settings.choice === 'greedy' && !changesAny(settings.processors))
        return { ...now, ...made.caches, ...chooseInHead(p, made.hidden, now, fixed, settings) }
      const given = { x: made.hidden }
      const { logits } = p.apply(llamaHead, given, p.weights('head'), { eps: settings.eps }, { label: 'head' })
      return { ...now, ...made.caches, ...choose(p, now, fixed, logits, settings) }
    })
    for (const [name, state] of Object.entries(all)) p.next(state, at(last, name))
    return {}
  },
})
