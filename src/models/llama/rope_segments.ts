/**
 * Where a text changes its rotation on the way. Longrope turns a text of more tokens than the original positions by other angles than a
 * shorter one, all of it: when a text outgrows them, what was cached is of no use and is read again, as Hugging Face's `generate` does.
 * Such a text is generated in two legs, the second of which has the words of the first in its prompt. A leg belongs to its case alone: what
 * else is in a batch changes nothing. Beams of a search are all of one length and go on together: `beam_segments.ts`.
 */
import type { StateValues } from '../decoding/decoding_states.js'
import type { Generation } from '../decoding/generation_options.js'
import type { LlamaConfig } from './config.js'
import { type Reach, reachOf } from './weights.js'

/** A search of one sequence, between two legs. */
export interface CarriedBeams {
  /** The text of each beam, all of one length. */
  readonly texts: readonly (readonly number[])[]
  /** Scores, ends and the pool, as states have them. */
  readonly kept: StateValues
  /** Words and parents of the steps taken, a row of them for each. */
  readonly history: Int32Array
  readonly parents: Int32Array
}

/** A part of a text that one table turns. */
export interface RopeSegment {
  /** The number of the case. */
  readonly index: number
  /** What is read before the first step, words of the leg before included. */
  readonly prompt: readonly number[]
  /** Tokens that were chosen before. */
  readonly chosen: number
  /** Tokens that are chosen when the leg is over, those before included. */
  readonly limit: number
  readonly reach: Reach
  /** Of beams that another leg began: what they go on from. Their `prompt` is the text of the first. */
  readonly carried?: CarriedBeams
}

type Rotated = Pick<LlamaConfig, 'rotary'>
type Limit = Pick<Generation, 'maxNewTokens'>

/** The leg that follows a prompt and the tokens chosen behind it. @param most tokens that may be chosen in all */
function segmentAfter(config: Rotated, index: number, prompt: readonly number[], chosen: number, most: number): RopeSegment {
  const { rotary } = config
  const reach = reachOf(config, prompt.length)
  // A token is chosen by all before it: the one behind the last original position is the last that short texts have.
  const isShort = rotary.type === 'longrope' && reach === 'short'
  const limit = isShort ? Math.min(most, chosen + rotary.originalPositions - prompt.length + 1) : most
  return { index, prompt, chosen, limit, reach }
}

/** How a case begins, which is all of it as a rule. @param generation undefined where nothing is chosen */
export function firstSegment(
  config: Rotated,
  index: number,
  prompt: readonly number[],
  generation: Limit | undefined,
): RopeSegment {
  return segmentAfter(config, index, prompt, 0, generation?.maxNewTokens ?? 0)
}

/** What follows a leg in which `words` were chosen; undefined where the text is over. */
export function nextSegment(
  config: Rotated,
  leg: RopeSegment,
  words: readonly number[],
  most: number,
  ends: readonly number[],
): RopeSegment | undefined {
  const chosen = leg.chosen + words.length
  if (chosen < leg.limit || chosen >= most || ends.includes(words.at(-1) ?? -1)) return undefined
  return segmentAfter(config, leg.index, [...leg.prompt, ...words], chosen, most)
}

/** The leg in which beams go on that have come to the end of theirs. */
export function nextBeamSegment(
  config: Rotated,
  { index, limit }: RopeSegment,
  carried: CarriedBeams,
  most: number,
): RopeSegment {
  return { ...segmentAfter(config, index, carried.texts[0] ?? [], limit, most), carried }
}
