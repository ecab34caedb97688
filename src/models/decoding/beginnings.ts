/**
 * Contents of states before the first step, as stored in an export's tables. `decoding_states.ts`, `logit_changes.ts` and `llama/start.ts` compute the same
 * numbers in Node; a test compares the texts that both produce.
 */

import type { DecodingMethod } from '../parts/generator_parts.js'
import { notYet } from './beam_search.js'

export type Begin =
  | 'fill'
  | 'first_beam'
  | 'table'
  | 'words'
  | 'behind'
  | 'longest'
  | 'lengths'
  | 'ends'
  | 'banned'
  | 'limit'
  | 'temperature'
  | 'top_k'
  | 'top_p'
  | 'min_p'
  | 'seeds_low'
  | 'seeds_high'
  | 'minimum'
  | 'penalty'
  | 'seen'
  | 'text'
  | 'forced_first'
  | 'forced_last'

export interface Beginning {
  readonly how: Begin
  /** Fill value, if the state is filled with one number. */
  readonly value?: number
}

const fill = (value: number): Beginning => ({ how: 'fill', value })

/** A token count that is never reached, for tokens that are banned throughout. */
const never = 2 ** 31 - 1

const common: Readonly<Record<string, Beginning>> = {
  step: fill(0),
  finished: fill(0),
  words: { how: 'words' },
  places: { how: 'behind' },
  cached: { how: 'behind' },
  slot: { how: 'longest' },
  first: { how: 'longest' },
  beams: { how: 'table' },
  lengths: { how: 'lengths' },
  ends: { how: 'ends' },
  banned: { how: 'banned' },
  always: fill(never),
  limit: { how: 'limit' },
  minimum: { how: 'minimum' },
  penalty: { how: 'penalty' },
  seen: { how: 'seen' },
  text: { how: 'text' },
  forcedFirst: { how: 'forced_first' },
  forcedLast: { how: 'forced_last' },
  most: { how: 'limit' },
  temperature: { how: 'temperature' },
  topK: { how: 'top_k' },
  topP: { how: 'top_p' },
  minP: { how: 'min_p' },
  seedsLow: { how: 'seeds_low' },
  seedsHigh: { how: 'seeds_high' },
  poolScores: fill(notYet.hf),
  poolSteps: fill(-1),
  poolRows: fill(0),
  poolWords: fill(0),
}

/** States that steps write before they read them. */
const written = ['history', 'parents', 'losses']

/** Initial contents of a state; undefined for one that steps write first. @throws Error for an unknown state */
export function beginningOf(state: string, way: DecodingMethod): Beginning | undefined {
  if (state === 'cumulative') return { how: 'first_beam', value: way === 'beams_hf' ? notYet.hf : notYet.plain }
  const found = Object.hasOwn(common, state) ? common[state] : undefined
  if (found === undefined && !written.includes(state)) throw new Error(`internal: state ${state} has no initial contents`)
  return found
}
