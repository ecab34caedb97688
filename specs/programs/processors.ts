/** What changes logits before words are chosen, in the order of Hugging Face's `generate`, and the states that this goes by. */
import { type Programming, type ProgramResult, type ProgramTensor, tensor } from 'heddle'
import { beamScores } from '../graphs/beam.js'
import { forcedStep, minimumStep, penaltyStep } from '../graphs/sampling.js'
import { at, pick, type Values } from './values.js'

/** Which of them a program has. */
export interface Processors {
  /** Words that were seen are less likely. */
  readonly penalised: boolean
  /** There are words that are never chosen. */
  readonly banned: boolean
  /** Rows have a least number of tokens. */
  readonly minimum: boolean
  /** Rows begin or end with words that are given. */
  readonly forced: boolean
}

export const noProcessors: Processors = { penalised: false, banned: false, minimum: false, forced: false }

/** Whether anything changes logits. */
export const changesAny = (processors: Processors): boolean => Object.values(processors).some((has) => has)

/** What the dimensions of a program are called: its rows, words that are never chosen, and words that a text ends with. */
export interface ProcessorDims {
  readonly rows: 'r' | 'b*w'
  readonly banned: string
  readonly forced: string
}

/** What steps change, and what they only read. Where nothing changes logits, none. */
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
  return { carried, fixed }
}

/** Logits as words are chosen by, and what is kept for the next step. */
export function processed(
  p: Programming,
  given: ProgramResult,
  { now, fixed }: { readonly now: Values; readonly fixed: Values },
  processors: Processors,
): { readonly logits: ProgramResult; readonly made: Values } {
  const step = at(now, 'step')
  const made: Record<string, ProgramTensor> = {}
  let logits = given
  if (processors.penalised) {
    const inputs = { logits, ...pick(now, ['seen', 'words']), penalty: at(fixed, 'penalty') }
    const penalised = p.apply(penaltyStep, inputs, {}, {}, { label: 'penalty' })
    logits = penalised.logits
    made.seen = penalised.seen
  }
  if (processors.banned) {
    // As end ids before the least number of tokens, which no text reaches.
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
  return { logits, made }
}

/**
 * The same of beams by the rule of `generate`, whose log-probabilities are changed, and not normalised again: `normalised` is 1 where they
 * are given instead of logits.
 */
export function processedBeams(
  p: Programming,
  logits: ProgramResult,
  values: { readonly now: Values; readonly fixed: Values },
  processors: Processors,
) {
  if (!changesAny(processors)) return { logits, made: {}, normalised: 0 }
  const { scores } = p.apply(beamScores, { logits }, {}, {}, { label: 'scores' })
  return { ...processed(p, scores, values, processors), normalised: 1 }
}
