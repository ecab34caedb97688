/**
 * RoPE segments: parts of a text that are rotated by different tables. Longrope rotates all of a text by other angles once it has more
 * tokens than the original positions. When a text outgrows them, the cached keys are useless and the text is read again, as in Hugging
 * Face's `generate`. Such a text is generated in two segments, and the second has the tokens of the first in its prompt. Segments depend on
 * their case alone, not on the rest of the batch. Beams of a search have equal lengths and continue together: `beam_segments.ts`.
 */
import type { StateValues } from '../decoding/decoding_states.js'
import type { Generation } from '../decoding/generation_options.js'
import type { LlamaConfig } from './config.js'
import { type RopeRange, ropeRangeOf } from './weights.js'

/** State of a search of one sequence between two segments. */
export interface CarriedBeams {
  /** The text of each beam, all of one length. */
  readonly texts: readonly (readonly number[])[]
  /** Scores, finished flags and the pool, as stored in states. */
  readonly states: StateValues
  /** Tokens chosen by the steps taken, one row per step. */
  readonly history: Int32Array
  /** Parent rows of the same steps. */
  readonly parents: Int32Array
  /** Losses of the same tokens, if requested. */
  readonly losses: Float32Array | undefined
}

/** A part of a text that is rotated by one table. */
export interface RopeSegment {
  /** Index of the case. */
  readonly index: number
  /** Tokens read before the first step, including those of the previous segment. */
  readonly prompt: readonly number[]
  /** Number of tokens chosen before this segment. */
  readonly chosen: number
  /** Number of tokens chosen by the end of this segment, including those before it. */
  readonly limit: number
  readonly ropeRange: RopeRange
  /** Search state from the previous segment, for beams. `prompt` is then the text of the first beam. */
  readonly carried?: CarriedBeams
}

type Rotated = Pick<LlamaConfig, 'rotary'>
type Limit = Pick<Generation, 'maxNewTokens'>

/** The segment after a prompt and the tokens chosen after it. @param most maximum number of tokens in all */
function segmentAfter(config: Rotated, index: number, prompt: readonly number[], chosen: number, most: number): RopeSegment {
  const { rotary } = config
  const ropeRange = ropeRangeOf(config, prompt.length)
  // A token is chosen from all before it, so the token after the last original position is still chosen with the short table.
  const isShort = rotary.type === 'longrope' && ropeRange === 'short'
  const limit = isShort ? Math.min(most, chosen + rotary.originalPositions - prompt.length + 1) : most
  return { index, prompt, chosen, limit, ropeRange }
}

/** First segment of a case, usually the only one. @param generation undefined if no tokens are chosen */
export function firstSegment(
  config: Rotated,
  index: number,
  prompt: readonly number[],
  generation: Limit | undefined,
): RopeSegment {
  return segmentAfter(config, index, prompt, 0, generation?.maxNewTokens ?? 0)
}

/** The segment after one in which `words` were generated; undefined if the text has ended. */
export function nextSegment(
  config: Rotated,
  segment: RopeSegment,
  words: readonly number[],
  most: number,
  ends: readonly number[],
): RopeSegment | undefined {
  const chosen = segment.chosen + words.length
  if (chosen < segment.limit || chosen >= most || ends.includes(words.at(-1) ?? -1)) return undefined
  return segmentAfter(config, segment.index, [...segment.prompt, ...words], chosen, most)
}

/** The segment in which beams continue at the end of theirs. */
export function nextBeamSegment(
  config: Rotated,
  { index, limit }: RopeSegment,
  carried: CarriedBeams,
  most: number,
): RopeSegment {
  return { ...segmentAfter(config, index, carried.texts[0] ?? [], limit, most), carried }
}
