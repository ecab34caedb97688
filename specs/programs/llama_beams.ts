/**
 * The LLaMA family with beam search: some steps, each of one token per beam. Prompts were read once per sequence, into the cache of its first beam. A
 * table has the row whose cache holds each position of a beam's past, so that all beams read the prompt there, and a parent's tokens in place. Tokens
 * chosen since the prompts are at the same positions of all caches, after the longest prompt. Dims: b sequences, w beams of each, u positions of the
 * caches, s capacity in steps, n hidden, h heads, g heads of keys and values, d headDim, i inner, v vocab, p positions and e pairs of the rotation's
 * tables, f end ids, x tokens that are never chosen, y tokens that texts are forced to end with, q parts of a row of logits, k candidates of each.
 */
import { type Programming, type ProgramResult, type ProgramTensor, program, tensor } from 'heddle'
import { beamStep, beamStepDiverse, beamStepHf } from '../graphs/beam.js'
import { keepBeamTokens, llamaHead, llamaWords } from '../graphs/llama_ends.js'
import { keepBeamLosses } from '../graphs/sampling.js'
import { cacheStates, type LlamaProgram, llamaConfig, llamaSizes, llamaStack } from './llama.js'
import { keptWords, noProcessors, type Processors, processedBeams, processorStates } from './processors.js'
import { at, pick, type Values } from './values.js'

/** The two rules for choosing beams. */
type Rule =
  /** With a diversity rate other than 0, tokens are also compared by the number of better tokens of their beam. */
  | { readonly kind: 'plain'; readonly diversityRate: number }
  | { readonly kind: 'hf'; readonly lengthPenalty: number; readonly earlyStopping: number }

export interface LlamaBeamsProgram extends LlamaProgram {
  /** Steps of a run. */
  readonly steps: number
  /** Tokens of a text at most. */
  readonly maxSteps: number
  readonly rule: Rule
  /** Logits processors. */
  readonly processors: Processors
  /** Keeps the loss of each token. */
  readonly losses: boolean
}

const config: LlamaBeamsProgram = {
  ...{ ...llamaConfig, steps: 1, maxSteps: 128 },
  ...{ rule: { kind: 'plain', diversityRate: 0 }, processors: noProcessors, losses: false },
}

const rows = tensor('i32', 'b*w')
const one = tensor('i32', '1')
const pool = {
  poolScores: tensor('f32', 'b w'),
  poolSteps: tensor('i32', 'b w'),
  poolRows: tensor('i32', 'b w'),
  poolWords: tensor('i32', 'b w'),
} as const

/** States that steps change, and states that they only read. */
function states(p: Programming, settings: LlamaBeamsProgram) {
  const { rule } = settings
  const carried: Record<string, ProgramTensor> = {
    step: p.state('step', one),
    slot: p.state('slot', one),
    words: p.state('words', rows),
    places: p.state('places', rows),
    finished: p.state('finished', rule.kind === 'hf' ? tensor('i32', 'b') : rows),
    cumulative: p.state('cumulative', tensor('f32', 'b*w')),
    beams: p.state('beams', tensor('i32', 'b*w u')),
  }
  if (rule.kind === 'hf') for (const [name, decl] of Object.entries(pool)) carried[name] = p.state(name, decl)
  carried.history = p.state('history', tensor('i32', 's b*w'))
  carried.parents = p.state('parents', tensor('i32', 's b*w'))
  if (settings.losses) carried.losses = p.state('losses', tensor('f32', 's b*w'))
  const dims = { rows: 'b*w', places: 'u', banned: 'x', forced: 'y', counted: true } as const
  const changing = processorStates(p, settings.processors, dims)
  Object.assign(carried, changing.carried)
  const fixed: Record<string, ProgramTensor> = {
    ends: p.state('ends', tensor('i32', 'f')),
    cached: p.state('cached', rows),
    first: p.state('first', one),
    ...changing.fixed,
  }
  return { carried, fixed, caches: cacheStates(p, settings, 'b*w') }
}

/** Computes the beams of the next step. */
function choose(p: Programming, now: Values, fixed: Values, given: ProgramResult, settings: LlamaBeamsProgram): Values {
  const { rule, maxSteps, processors } = settings
  const { logits, normalised } = processedBeams(p, given, { now, fixed }, { processors, rule: rule.kind })
  const inputs = { logits, ...pick(now, ['cumulative', 'step', 'finished']), ends: at(fixed, 'ends') }
  const options = { label: 'beams', dims: { p: 'q' } }
  const chosen =
    rule.kind === 'hf'
      ? p.apply(
          beamStepHf,
          { ...inputs, ...pick(now, ['poolScores', 'poolSteps', 'poolRows', 'poolWords']) },
          {},
          { lengthPenalty: rule.lengthPenalty, earlyStopping: rule.earlyStopping, maxSteps, normalised },
          options,
        )
      : rule.diversityRate === 0
        ? p.apply(beamStep, inputs, {}, { maxSteps }, options)
        : p.apply(beamStepDiverse, inputs, {}, { maxSteps, diversityRate: rule.diversityRate }, options)
  const { parents, ...after } = chosen
  const before = {
    ...pick(now, ['step', 'slot', 'history', 'parents', 'beams', 'places']),
    words: after.words,
    chosenParents: parents,
  }
  const kept = keptWords(p, now, { words: after.words, parents }, { processors, counted: true })
  const lost = { logits: given, ...pick(before, ['words', 'chosenParents', 'step']) }
  const losses = settings.losses
    ? p.apply(keepBeamLosses, { ...lost, losses: at(now, 'losses') }, {}, {}, { label: 'losses' })
    : {}
  return { ...after, ...kept, ...losses, ...p.apply(keepBeamTokens, before, {}, { maxSteps }, { label: 'keep' }) }
}

export const llamaBeams = program('llama_beams', {
  dims: { b: 8, w: 4, ...withoutRows(llamaSizes), s: 128, f: 1, x: 1, y: 1, q: 63, k: 4 },
  config,
  inputs: {},
  build: (p, _, settings) => {
    const { carried, fixed, caches } = states(p, settings)
    const all = { ...carried, ...caches }
    const last = p.steps('step', settings.steps, all, (now: Values) => {
      const words = p.apply(llamaWords, { ids: at(now, 'words') }, p.weights('embeddings'), {}, { label: 'embed' }).hidden
      const where = { ...pick(now, ['places', 'beams', 'slot']), ...pick(fixed, ['cached', 'first']) }
      const made = llamaStack(p, 'beams', words, now, where, settings)
      const given = { x: made.hidden }
      const { logits } = p.apply(llamaHead, given, p.weights('head'), { eps: settings.eps }, { label: 'head' })
      return { ...now, ...made.caches, ...choose(p, now, fixed, logits, settings) }
    })
    for (const [name, state] of Object.entries(all)) p.next(state, at(last, name))
    return {}
  },
})

/** Sizes of the family, except rows: those of beams are a product. */
function withoutRows({ r: _, ...sizes }: typeof llamaSizes) {
  return sizes
}
