/**
 * How text is generated: the caller's options, checked, and reduced to one way of choosing words. Everything is checked before a
 * device is asked for anything.
 */
import { usageError } from '../../errors.js'
import { countFor, rankedCounts } from '../../ir/top_k.js'
import type { BeamRule } from './beam_search.js'
import { type LogitChanges, type LogitOptions, noChanges, resolveChanges } from './logit_changes.js'
import { around, factor, largestFactor, refuse, share, whole } from './option_checks.js'

/** What a caller may say; everything has a default. */
export interface GenerationOptions extends LogitOptions {
  /** Hypotheses that are followed side by side; 1 follows the best word only. */
  readonly beams?: number
  /** Hypotheses that are returned of each case, at most `beams`. */
  readonly returned?: number
  /**
   * How beams end. `plain`: a finished beam keeps its place at no cost and is compared by its sum of log-probabilities
   * (FasterTransformer). `hf`: finished hypotheses leave the beams for a pool, compared by sum / length^lengthPenalty. `plain` by default;
   * `hf` where a length penalty or a way of stopping early is given.
   */
  readonly rule?: BeamRule
  /** For rule `hf`; a length to this power must be a float32. 1 by default. */
  readonly lengthPenalty?: number
  /** For rule `hf`: stop at as many finished hypotheses as beams (`true`), when no better one is likely (`false`), or possible (`never`). */
  readonly earlyStopping?: boolean | 'never'
  /**
   * For rule `plain`: added to the score of a word for each word of the same beam that is better, when words are compared and nowhere else
   * (FasterTransformer's `beam_search_diversity_rate`). Below 0, words of different beams are preferred. 0 by default.
   */
  readonly diversityRate?: number
  /**
   * Any of these four makes choices random. Logits are divided by it, from 1e-6 to 1e6; 1 by default. 0 draws nothing: the likeliest words
   * are followed, whatever the other three and the seed are.
   */
  readonly temperature?: number
  /**
   * Only so many of the likeliest words: up to 64 exactly so many, of equals those with the lowest ids; of more, what equals the last
   * remains too.
   */
  readonly topK?: number
  /** Only the likeliest words that together have this probability. */
  readonly topP?: number
  /** Only words at least so probable, times the probability of the likeliest. */
  readonly minP?: number
  /** Of the draws: one for all cases, or one for each. Results depend on a case's seed, never on where it stands. 0 by default. */
  readonly seed?: number | readonly number[]
  /**
   * Whether results have log-probabilities of their tokens: by the model's own logits, before a temperature or anything else changes them.
   * Not with beams, which have sums. False by default.
   */
  readonly logprobs?: boolean
  /** 128 by default, but never more than the model has positions. */
  readonly maxNewTokens?: number
}

export interface Beams {
  readonly kind: 'beams'
  readonly width: number
  readonly returned: number
  readonly rule: BeamRule
  readonly lengthPenalty: number
  readonly earlyStopping: boolean | 'never'
  /** Of rule `plain`; 0 of the other. */
  readonly diversityRate: number
}

/** How the rule of Hugging Face's `generate` numbers its ways of stopping early. */
export const stoppingOf = { false: 0, true: 1, never: 2 } as const

export interface Sampling {
  readonly kind: 'sampling'
  readonly temperature: number
  /** 0: every word. */
  readonly topK: number
  readonly topP: number
  readonly minP: number
  /** A seed for each case, or one for all. */
  readonly seeds: readonly number[]
}

/** The most candidates of a part that kernels are compiled for. */
export const mostCandidates = rankedCounts.at(-1) ?? 0

/**
 * Candidates of each part of a row that a draw looks at: the count kernels are compiled for that holds its top-k; undefined where it
 * looks at every word.
 */
export const candidatesOf = ({ topK }: Sampling): number | undefined =>
  topK === 0 || topK > mostCandidates ? undefined : countFor(topK)

/** How words are chosen. */
export type Choice = { readonly kind: 'greedy' } | Beams | Sampling

export interface Generation extends LogitChanges {
  readonly choice: Choice
  readonly maxNewTokens: number
  readonly logprobs: boolean
}

/** Any, where what is asked for does not depend on it: all ways of choosing words have the model's weights. */
export const anyGeneration: Generation = { choice: { kind: 'greedy' }, maxNewTokens: 1, logprobs: false, ...noChanges }

/** What the model and the cases allow. */
export interface GenerationLimits {
  readonly vocab: number
  /** Places the decoder has a position for; undefined where it computes them. */
  readonly positions: number | undefined
  readonly cases: number
  /** Ids that end a text; without any, only the limit of tokens does. */
  readonly endTokens: readonly number[]
}

/** Bits of the exponent that a length to the power of its penalty may take: a quarter of a float32's range is left for the sum. */
const mostPowerBits = 96

/** Kernels are compiled for no more. */
const mostBeams = 64
const usualTokens = 128

/**
 * Checks the options of a run.
 * @throws usage `generate.<option>` naming the value and what is allowed, `generate.end` for a model without an end id where no limit is given
 */
export function resolveGeneration(options: GenerationOptions, limits: GenerationLimits): Generation {
  const { positions, endTokens } = limits
  if (endTokens.length === 0 && options.maxNewTokens === undefined) {
    throw usageError('generate.end', 'the model names no end id, so nothing says when a text ends', {
      hint: 'give a limit: maxNewTokens, or --max-new-tokens',
    })
  }
  const most = positions ?? Number.MAX_SAFE_INTEGER
  const hint = positions === undefined ? undefined : `the model has positions for ${positions} tokens`
  const maxNewTokens = whole('maxNewTokens', options.maxNewTokens ?? Math.min(usualTokens, most), 1, most, hint)
  const choice = choiceOf(options, limits, maxNewTokens)
  const changes = resolveChanges(options, { vocab: limits.vocab, maxNewTokens })
  const { logprobs = false } = options
  if (typeof logprobs !== 'boolean') refuse('logprobs', logprobs, 'true or false')
  if (logprobs && choice.kind === 'beams')
    refuse('logprobs', logprobs, 'false with beams', 'beams have sums of log-probabilities')
  return { choice, maxNewTokens, logprobs, ...changes }
}

/** Holds numbers that need no model to their ranges. @throws usage `generate.<option>` */
export function expectRanges({ temperature, topP, minP, repetitionPenalty }: GenerationOptions): void {
  if (temperature !== undefined) factor('temperature', temperature)
  if (topP !== undefined) share('topP', topP)
  if (minP !== undefined && minP !== 0) share('minP', minP)
  if (repetitionPenalty !== undefined) factor('repetitionPenalty', repetitionPenalty)
}

/** True if options ask for a search with beams: more than one, or a rule of one. */
export const searchesBeams = ({ beams = 1, rule, lengthPenalty, earlyStopping, diversityRate }: GenerationOptions): boolean =>
  beams > 1 || [rule, lengthPenalty, earlyStopping, diversityRate].some((value) => value !== undefined)

function choiceOf(options: GenerationOptions, limits: GenerationLimits, maxNewTokens: number): Choice {
  const { temperature, topK, topP, minP, seed } = options
  const drawn = [temperature, topK, topP, minP, seed].some((value) => value !== undefined)
  // Options that a temperature of 0 leaves without use are held to their ranges all the same.
  const sampling = drawn ? samplingOf(temperature === 0 ? { ...options, temperature: 1 } : options, limits) : undefined
  const random = drawn && temperature !== 0
  const width = whole('beams', options.beams ?? 1, 1, mostBeams)
  if (searchesBeams(options)) return beamsOf(options, { width, random, maxNewTokens }, limits)
  const several = random
    ? 'give a case as often as draws of it are wanted, and a seed for each'
    : 'only beams have several results'
  whole('returned', options.returned ?? 1, 1, 1, several)
  return random && sampling !== undefined ? sampling : { kind: 'greedy' }
}

interface BeamChoice {
  readonly width: number
  /** True if options of draws were given. */
  readonly random: boolean
  readonly maxNewTokens: number
}

function beamsOf(options: GenerationOptions, { width, random, maxNewTokens }: BeamChoice, { vocab }: GenerationLimits): Beams {
  if (random)
    refuse('beams', width, '1 with temperature, topK, topP, minP or a seed', 'beams are not drawn: choose one of the two')
  if (2 * width > vocab) refuse('beams', width, `at most ${Math.floor(vocab / 2)}, half of the model's ${vocab} words`)
  const compares = options.lengthPenalty !== undefined || options.earlyStopping !== undefined
  const { rule = compares ? 'hf' : 'plain', lengthPenalty = 1, earlyStopping = false } = options
  if (rule !== 'plain' && rule !== 'hf') refuse('rule', rule, 'plain or hf')
  if (rule === 'plain' && compares) refuse('rule', rule, 'hf with a length penalty or a way of stopping early')
  const steepest = Math.floor(mostPowerBits / Math.log2(maxNewTokens + 1))
  around('lengthPenalty', lengthPenalty, steepest, 'length to this power must be a float32')
  const { diversityRate = 0 } = options
  around('diversityRate', diversityRate, largestFactor)
  if (rule === 'hf' && diversityRate !== 0)
    refuse(
      'diversityRate',
      diversityRate,
      '0 with the hf rule',
      'the plain rule has it: leave length penalty and early stopping out',
    )
  if (typeof earlyStopping !== 'boolean' && earlyStopping !== 'never')
    refuse('earlyStopping', earlyStopping, 'true, false or never')
  return {
    kind: 'beams',
    width,
    returned: whole('returned', options.returned ?? 1, 1, width),
    rule,
    lengthPenalty,
    earlyStopping,
    diversityRate,
  }
}

function samplingOf({ temperature, topK, topP, minP, seed }: GenerationOptions, { vocab, cases }: GenerationLimits): Sampling {
  const seeds: readonly number[] = seed === undefined ? [0] : typeof seed === 'object' && seed !== null ? seed : [seed]
  if (seeds.length !== 1 && seeds.length !== cases)
    refuse('seed', seeds.length, `one seed, or one for each of the ${cases} cases`)
  for (const value of seeds) whole('seed', value, 0, Number.MAX_SAFE_INTEGER)
  return {
    kind: 'sampling',
    temperature: factor('temperature', temperature ?? 1),
    topK: whole('topK', topK ?? 0, 0, vocab),
    topP: share('topP', topP ?? 1),
    minP: minP === undefined || minP === 0 ? 0 : share('minP', minP),
    seeds,
  }
}
