/**
 * Generation options: the caller's options, checked, and reduced to one method of choosing tokens. All checks happen before any
 * device work.
 */
import { usageError } from '../../errors.js'
import { countFor, rankedCounts } from '../../ir/top_k.js'
import type { BeamRule } from './beam_search.js'
import { type LogitChanges, type LogitOptions, noChanges, resolveChanges } from './logit_changes.js'
import { around, factor, largestFactor, refuse, share, whole } from './option_checks.js'

/** Generation options of a caller; each has a default. */
export interface GenerationOptions extends LogitOptions {
  /** Beam width: hypotheses followed in parallel; 1 follows the best token only. */
  readonly beams?: number
  /** Hypotheses returned per case, at most `beams`. */
  readonly returned?: number
  /**
   * Treatment of finished beams. `plain`: a finished beam keeps its slot with its score unchanged and is ranked by its sum of
   * log-probabilities (FasterTransformer). `hf`: finished hypotheses move from the beams to a pool, ranked by sum / length^lengthPenalty.
   * `plain` by default; `hf` if a length penalty or an early-stopping mode is given.
   */
  readonly rule?: BeamRule
  /** Length penalty of rule `hf`; a length to this power must fit a float32. 1 by default. */
  readonly lengthPenalty?: number
  /** Stopping of rule `hf`: at as many finished hypotheses as beams (`true`), when a better one is unlikely (`false`), or impossible (`never`). */
  readonly earlyStopping?: boolean | 'never'
  /**
   * For rule `plain`: added to a token's score for each better token of the same beam, in comparisons only (FasterTransformer's
   * `beam_search_diversity_rate`). Negative values prefer tokens of different beams. 0 by default.
   */
  readonly diversityRate?: number
  /**
   * Divisor of the logits, from 1e-6 to 1e6; 1 by default. Giving any of `temperature`, `topK`, `topP` and `minP` turns on sampling. 0 turns
   * sampling off: the likeliest token is chosen, regardless of the other three and the seed.
   */
  readonly temperature?: number
  /**
   * Samples from this many of the likeliest tokens. Up to 64 the count is exact, with ties broken by the lowest ids; above 64, ties with
   * the last token are kept too.
   */
  readonly topK?: number
  /** Samples from the likeliest tokens that together have this probability. */
  readonly topP?: number
  /** Samples from tokens with at least this fraction of the likeliest token's probability. */
  readonly minP?: number
  /** Random seed: one for all cases, or one per case. Results depend on a case's seed, never on its index. 0 by default. */
  readonly seed?: number | readonly number[]
  /**
   * True if results have log-probabilities of their tokens, from the model's own logits before temperature or any other processing.
   * Not available with beams, which have sums. False by default.
   */
  readonly logprobs?: boolean
  /** Maximum number of generated tokens. 128 by default, but never more than the model's positions. */
  readonly maxNewTokens?: number
}

export interface Beams {
  readonly kind: 'beams'
  readonly width: number
  readonly returned: number
  readonly rule: BeamRule
  readonly lengthPenalty: number
  readonly earlyStopping: boolean | 'never'
  /** Diversity rate of rule `plain`; 0 for `hf`. */
  readonly diversityRate: number
}

/** Codes of the early-stopping modes of Hugging Face's `generate`. */
export const stoppingOf = { false: 0, true: 1, never: 2 } as const

export interface Sampling {
  readonly kind: 'sampling'
  readonly temperature: number
  /** 0: all tokens. */
  readonly topK: number
  readonly topP: number
  readonly minP: number
  /** One seed per case, or one for all. */
  readonly seeds: readonly number[]
}

/** Largest number of candidates per part that kernels are compiled for. */
export const mostCandidates = rankedCounts.at(-1) ?? 0

/**
 * Candidates per part of a row that sampling considers: the smallest compiled count that covers its top-k. Undefined if it considers
 * every token.
 */
export const candidatesOf = ({ topK }: Sampling): number | undefined =>
  topK === 0 || topK > mostCandidates ? undefined : countFor(topK)

/** Method of choosing tokens. */
export type Choice = { readonly kind: 'greedy' } | Beams | Sampling

export interface Generation extends LogitChanges {
  readonly choice: Choice
  readonly maxNewTokens: number
  readonly logprobs: boolean
}

/** A generation for callers whose result does not depend on it: all methods of choosing tokens use the same weights. */
export const anyGeneration: Generation = { choice: { kind: 'greedy' }, maxNewTokens: 1, logprobs: false, ...noChanges }

/** Limits of the model and the cases. */
export interface GenerationLimits {
  readonly vocab: number
  /** Number of positions of the decoder; undefined if it computes them. */
  readonly positions: number | undefined
  readonly cases: number
  /** Ids that end a text; without any, only the token limit does. */
  readonly endTokens: readonly number[]
}

/** Exponent bits that a length to the power of its penalty may use; a quarter of the float32 range remains for the sum. */
const mostPowerBits = 96

/** Largest beam width that kernels are compiled for. */
const mostBeams = 64
const usualTokens = 128

/**
 * Checks the options of a run.
 * @throws usage `generate.<option>` naming the value and the allowed range, `generate.end` for a model without an end id if no limit is given
 */
export function resolveGeneration(options: GenerationOptions, limits: GenerationLimits): Generation {
  const { positions, endTokens } = limits
  if (endTokens.length === 0 && options.maxNewTokens === undefined) {
    throw usageError('generate.end', 'the model has no end id, so generation would not stop', {
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
  return { choice, maxNewTokens, logprobs, ...changes }
}

/** Checks the ranges of numbers that do not depend on the model. @throws usage `generate.<option>` */
export function expectRanges({ temperature, topP, minP, repetitionPenalty }: GenerationOptions): void {
  if (temperature !== undefined) factor('temperature', temperature)
  if (topP !== undefined) share('topP', topP)
  if (minP !== undefined && minP !== 0) share('minP', minP)
  if (repetitionPenalty !== undefined) factor('repetitionPenalty', repetitionPenalty)
}

/** True if options request beam search: several beams, or an option of a beam rule. */
export const searchesBeams = ({ beams = 1, rule, lengthPenalty, earlyStopping, diversityRate }: GenerationOptions): boolean =>
  beams > 1 || [rule, lengthPenalty, earlyStopping, diversityRate].some((value) => value !== undefined)

function choiceOf(options: GenerationOptions, limits: GenerationLimits, maxNewTokens: number): Choice {
  const { temperature, topK, topP, minP, seed } = options
  const drawn = [temperature, topK, topP, minP, seed].some((value) => value !== undefined)
  // Sampling options are range-checked even if a temperature of 0 makes them unused.
  const sampling = drawn ? samplingOf(temperature === 0 ? { ...options, temperature: 1 } : options, limits) : undefined
  const random = drawn && temperature !== 0
  const width = whole('beams', options.beams ?? 1, 1, mostBeams)
  if (searchesBeams(options)) return beamsOf(options, { width, random, maxNewTokens }, limits)
  const several = random ? 'repeat a case once per sample, with a seed for each' : 'only beams have several results'
  whole('returned', options.returned ?? 1, 1, 1, several)
  return random && sampling !== undefined ? sampling : { kind: 'greedy' }
}

interface BeamChoice {
  readonly width: number
  /** True if sampling options were given. */
  readonly random: boolean
  readonly maxNewTokens: number
}

function beamsOf(options: GenerationOptions, { width, random, maxNewTokens }: BeamChoice, { vocab }: GenerationLimits): Beams {
  if (random)
    refuse('beams', width, '1 with temperature, topK, topP, minP or a seed', 'beam search does not sample: choose one of the two')
  if (2 * width > vocab) refuse('beams', width, `at most ${Math.floor(vocab / 2)}, half of the model's ${vocab} words`)
  const compares = options.lengthPenalty !== undefined || options.earlyStopping !== undefined
  const { rule = compares ? 'hf' : 'plain', lengthPenalty = 1, earlyStopping = false } = options
  if (rule !== 'plain' && rule !== 'hf') refuse('rule', rule, 'plain or hf')
  if (rule === 'plain' && compares) refuse('rule', rule, 'hf with a length penalty or early stopping')
  const steepest = Math.floor(mostPowerBits / Math.log2(maxNewTokens + 1))
  around('lengthPenalty', lengthPenalty, steepest, 'length to this power must fit a float32')
  const { diversityRate = 0 } = options
  around('diversityRate', diversityRate, largestFactor)
  if (rule === 'hf' && diversityRate !== 0)
    refuse(
      'diversityRate',
      diversityRate,
      '0 with the hf rule',
      'the plain rule supports it: omit length penalty and early stopping',
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
