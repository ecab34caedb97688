/** Logits processors in the order of Hugging Face's `generate`, and their states. */
import { type Programming, type ProgramResult, type ProgramTensor, tensor } from 'heddle'
import {
  forcedStep,
  keepBeamSeen,
  keepBeamText,
  keepSeen,
  keepText,
  keepTextPlaces,
  minimumStep,
  ngramStep,
  penaltyStep,
  scoresStep,
} from '../graphs/processors.js'
import { at, pick, type Values } from './values.js'

/** The processors of a program. */
export interface Processors {
  /** Tokens that were seen are less likely. */
  readonly penalised: boolean
  /** Length of n-grams that are never repeated; 0: none. */
  readonly ngrams: number
  /** Some tokens are never chosen. */
  readonly banned: boolean
  /** Rows have a least number of tokens. */
  readonly minimum: boolean
  /** Rows begin or end with given tokens. */
  readonly forced: boolean
}

export const noProcessors: Processors = { penalised: false, ngrams: 0, banned: false, minimum: false, forced: false }

/** True if any logits are changed before tokens are chosen. */
export const changesAny = (processors: Processors): boolean => Object.values(processors).some(Boolean)

/** Differences between programs. */
export interface ProcessorDims {
  /** Names of dimensions: rows, positions of a row's text, tokens that are never chosen, tokens that a text ends with. */
  readonly rows: 'r' | 'b*w'
  readonly places: string
  readonly banned: string
  readonly forced: string
  /** Set if steps also count positions per row for other purposes. */
  readonly counted: boolean
}

/** States that steps change, and states that they only read. None without processors. */
export function processorStates(p: Programming, processors: Processors, dims: ProcessorDims) {
  const rows = { i32: tensor('i32', dims.rows), f32: tensor('f32', dims.rows) } as const
  const carried: Record<string, ProgramTensor> = {}
  const fixed: Record<string, ProgramTensor> = {}
  if (processors.minimum) fixed.minimum = p.state('minimum', rows.i32)
  if (processors.banned) {
    fixed.banned = p.state('banned', tensor('i32', dims.banned))
    fixed.always = p.state('always', rows.i32)
  }
  if (processors.forced) {
    fixed.forcedFirst = p.state('forcedFirst', rows.i32)
    fixed.forcedLast = p.state('forcedLast', tensor('i32', dims.forced))
    fixed.most = p.state('most', rows.i32)
  }
  if (processors.penalised) {
    carried.seen = p.state('seen', tensor('i32', `${dims.rows} v`))
    fixed.penalty = p.state('penalty', rows.f32)
  }
  if (processors.ngrams > 0) {
    carried.text = p.state('text', tensor('i32', `${dims.rows} ${dims.places}`))
    if (!dims.counted) carried.places = p.state('places', rows.i32)
  }
  return { carried, fixed }
}

/** States of the current step: those that it changes, and those that it only reads. */
export interface StepValues {
  readonly now: Values
  readonly fixed: Values
}

/** Logits from which tokens are chosen. */
export function processed(
  p: Programming,
  given: ProgramResult,
  { now, fixed }: StepValues,
  processors: Processors,
): ProgramResult {
  const step = at(now, 'step')
  let logits = given
  if (processors.penalised) {
    const inputs = { logits, seen: at(now, 'seen'), penalty: at(fixed, 'penalty') }
    logits = p.apply(penaltyStep, inputs, {}, {}, { label: 'penalty' }).logits
  }
  if (processors.ngrams > 0) {
    const inputs = { logits, ...pick(now, ['text', 'places']) }
    logits = p.apply(ngramStep, inputs, {}, { size: processors.ngrams }, { label: 'ngrams' }).logits
  }
  if (processors.banned) {
    // Banned tokens are handled as end ids before a least number of tokens that no text reaches.
    const inputs = { logits, step, ends: at(fixed, 'banned'), minimum: at(fixed, 'always') }
    logits = p.apply(minimumStep, inputs, {}, {}, { label: 'banned' }).logits
  }
  if (processors.minimum) {
    const inputs = { logits, step, ...pick(fixed, ['ends', 'minimum']) }
    logits = p.apply(minimumStep, inputs, {}, {}, { label: 'minimum' }).logits
  }
  if (processors.forced) {
    const inputs = { logits, step, first: at(fixed, 'forcedFirst'), last: at(fixed, 'forcedLast'), most: at(fixed, 'most') }
    logits = p.apply(forcedStep, inputs, {}, {}, { label: 'forced' }).logits
  }
  return logits
}

/**
 * Logits from which beams are chosen. The rule of `generate` changes log-probabilities and does not normalise them again: `normalised` is 1 if they
 * are given instead of logits.
 */
export function processedBeams(
  p: Programming,
  logits: ProgramResult,
  values: StepValues,
  { processors, rule }: { readonly processors: Processors; readonly rule: 'plain' | 'hf' },
): { readonly logits: ProgramResult; readonly normalised: number } {
  if (rule === 'plain' || !changesAny(processors)) return { logits: processed(p, logits, values, processors), normalised: 0 }
  const scores = p.apply(scoresStep, { logits }, {}, {}, { label: 'scores' }).logits
  return { logits: processed(p, scores, values, processors), normalised: 1 }
}

/**
 * States updated by the tokens that were chosen.
 * @param parents rows that rows continue, if beams were chosen
 */
export function keptWords(
  p: Programming,
  now: Values,
  { words, parents }: { readonly words: ProgramResult; readonly parents?: ProgramResult },
  { processors, counted }: { readonly processors: Processors; readonly counted: boolean },
): Values {
  const kept: Record<string, ProgramTensor> = {}
  if (processors.penalised) {
    const inputs = { seen: at(now, 'seen'), words }
    const label = { label: 'seen' }
    const after =
      parents === undefined
        ? p.apply(keepSeen, inputs, {}, {}, label)
        : p.apply(keepBeamSeen, { ...inputs, parents }, {}, {}, label)
    kept.seen = after.seen
  }
  if (processors.ngrams > 0) {
    const inputs = { ...pick(now, ['text', 'places']), words }
    const label = { label: 'text' }
    const after =
      parents === undefined
        ? p.apply(keepText, inputs, {}, {}, label)
        : p.apply(keepBeamText, { ...inputs, parents }, {}, {}, label)
    kept.text = after.text
    if (!counted) kept.places = p.apply(keepTextPlaces, { places: at(now, 'places') }, {}, {}, { label: 'places' }).places
  }
  return kept
}
