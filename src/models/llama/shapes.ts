/** Sizes of a batch: checks that its texts have room, and the shape of the rows they are generated in. */
import { usageError } from '../../errors.js'
import { endsOf } from '../decoding/decoding_states.js'
import type { Generation, GenerationOptions } from '../decoding/generation_options.js'
import { longestOf, type TokenCase } from '../parts/token_cases.js'
import type { LlamaConfig } from './config.js'
import type { RopeSegment } from './rope_segments.js'
import type { RopeRange } from './weights.js'

export interface RowsShape {
  /** Rows of the caches: sequences times beams. */
  readonly rows: number
  /** Beams per sequence, in consecutive rows; 1 without beam search. */
  readonly width: number
  /** Positions of the caches. */
  readonly capacity: number
  /** Maximum number of steps. */
  readonly steps: number
  /** Steps per run. */
  readonly perRun: number
  /** Number of end ids; at least 1. */
  readonly ends: number
  readonly ropeRange: RopeRange
  /** Fixed number of tokens of every prompt pass; undefined if passes are sized by their tokens. */
  readonly pass: number | undefined
}

/** Logits per part of a row when one token is chosen: so few that the parts of one row fill a device. */
const partLength = 1024

/** Number of parts of a row of logits that one token is chosen from. */
export const wordParts = (vocab: number): number => Math.ceil(vocab / partLength)

/** Steps between two checks for ended texts. */
export const stepsPerRun = 8

/** Limits texts without their own limit to the model's positions. */
export function limited({ positions }: LlamaConfig, cases: readonly TokenCase[], given: GenerationOptions): GenerationOptions {
  if (given.maxNewTokens !== undefined) return given
  const room = positions - longestOf(cases)
  return room > 0 && room < usualTokens ? { ...given, maxNewTokens: room } : given
}

/** Default maximum number of tokens, the same as in `resolveGeneration`. */
const usualTokens = 128

/** @throws usage `run.capacity` for an invalid capacity */
function expectCapacity(positions: number, capacity: number | undefined): void {
  if (capacity === undefined || (Number.isInteger(capacity) && capacity >= 1 && capacity <= positions)) return
  throw usageError('run.capacity', `capacity is ${capacity}, expected an integer from 1 to ${positions}, the model's positions`)
}

/** @throws usage `run.capacity` for a case without room for the requested tokens, and for caches larger than the model's positions */
export function checkCapacity(
  { positions, beyond }: LlamaConfig,
  cases: readonly TokenCase[],
  { maxNewTokens }: Generation,
  capacity: number | undefined,
): void {
  expectCapacity(positions, capacity)
  const at = cases.findIndex(({ inputIds }) => inputIds.length + maxNewTokens > positions)
  if (at < 0) return
  const length = cases[at]?.inputIds.length ?? 0
  throw usageError(
    'run.capacity',
    `case ${at} has ${length} tokens and may get ${maxNewTokens} more, the model has ${positions} positions`,
    {
      hint: [
        length < positions ? `ask for at most ${positions - length} new tokens` : 'the text leaves no room for a token',
        beyond,
      ]
        .filter((part) => part !== undefined)
        .join('; '),
    },
  )
}

/** Minimum capacity of caches. They grow in steps of an eighth of the next power of two, so that shapes recur. */
const leastCapacity = 32

/** Cache capacity for texts of at most `length` tokens. */
export function capacityFor(length: number, positions: number): number {
  const step = Math.max(2 ** Math.ceil(Math.log2(length)) / 8, leastCapacity)
  return Math.min(Math.ceil(length / step) * step, positions)
}

/** Shape of a batch of segments, which use the same RoPE tables and have chosen equally many tokens before. */
export function shapeOf(
  config: LlamaConfig,
  segments: readonly RopeSegment[],
  generation: Pick<Generation, 'choice' | 'maxNewTokens'> | undefined,
  { capacity = 0, invariant }: { readonly capacity?: number | undefined; readonly invariant?: number | undefined } = {},
): RowsShape {
  const length = Math.max(...segments.map(({ prompt, chosen, limit }) => prompt.length + limit - chosen))
  const [first] = segments
  const chosen = first?.chosen ?? 0
  const steps = Math.max(...segments.map(({ limit }) => limit)) - chosen
  const perRun = generation === undefined || !isCut(segments, generation) ? stepsPerRun : commonDivisor(steps, stepsPerRun)
  const width = generation?.choice.kind === 'beams' ? generation.choice.width : 1
  const places =
    invariant === undefined ? capacityFor(Math.max(length, capacity), config.positions) : fixedCapacity(config, capacity)
  return {
    rows: (invariant ?? segments.length) * width,
    width,
    capacity: places,
    steps: chosen + Math.max(Math.ceil(steps / perRun), 1) * perRun,
    perRun,
    ends: endsOf(config.eos),
    ropeRange: first?.ropeRange ?? 'short',
    pass: invariant === undefined ? undefined : Math.min(places, mostFixedTokens),
  }
}

/** Default capacity, largest pass and largest number of rows of invariant runs. */
const usualFixedCapacity = 4096
const mostFixedTokens = 512
const mostFixedRows = 1024

/** Cache capacity of invariant runs. @param requested 0 for the default */
const fixedCapacity = ({ positions }: LlamaConfig, requested: number): number =>
  requested > 0 ? requested : Math.min(positions, usualFixedCapacity)

/** @throws usage `run.invariant`, `run.capacity` for a text that does not fit the fixed caches */
export function checkInvariant(
  config: LlamaConfig,
  cases: readonly TokenCase[],
  { invariant, capacity }: { readonly invariant?: number | undefined; readonly capacity?: number | undefined },
  newTokens: number,
): void {
  expectCapacity(config.positions, capacity)
  if (invariant === undefined) return
  if (!(Number.isInteger(invariant) && invariant >= 1 && invariant <= mostFixedRows)) {
    throw usageError(
      'run.invariant',
      `invariant is ${invariant}, expected an integer from 1 to ${mostFixedRows}: the number of rows of every run`,
    )
  }
  const places = fixedCapacity(config, capacity ?? 0)
  const at = cases.findIndex(({ inputIds }) => inputIds.length + newTokens > places)
  if (at < 0) return
  const length = cases[at]?.inputIds.length ?? 0
  throw usageError(
    'run.capacity',
    `case ${at} has ${length} tokens and may get ${newTokens} more, caches of all invariant runs have ${places} places`,
    { hint: `give a capacity of up to ${config.positions}; results of runs with another one may differ in their last bits` },
  )
}

/** True if another segment continues the beams: their steps must then end where the segment does. */
const isCut = (
  segments: readonly RopeSegment[],
  { choice, maxNewTokens }: Pick<Generation, 'choice' | 'maxNewTokens'>,
): boolean => choice.kind === 'beams' && segments.some(({ limit }) => limit < maxNewTokens)

const commonDivisor = (a: number, b: number): number => (b === 0 ? a : commonDivisor(b, a % b))

/** Constraints on batches. */
export interface Batching {
  /** Maximum number of segments per batch. */
  readonly most: number
  readonly generation?: Pick<Generation, 'choice' | 'maxNewTokens'>
  /** Fixed number of rows, if results must not depend on the batch. */
  readonly invariant?: number | undefined
}

/**
 * Batches of segments with the same RoPE tables. Beams write after the longest prompt of a batch, and the rounding of sums over their past
 * depends on these positions: if results must not depend on the batch, beams run with prompts of equal length. Beams that another segment
 * continues run alone.
 */
export function batchesOf(segments: readonly RopeSegment[], { most, generation, invariant }: Batching): RopeSegment[][] {
  const found: RopeSegment[][] = []
  const beams = generation?.choice.kind === 'beams'
  const byLength = beams && invariant !== undefined
  const goesWith = (first: RopeSegment, segment: RopeSegment): boolean =>
    first.ropeRange === segment.ropeRange &&
    !(generation !== undefined && isCut([first, segment], generation)) &&
    (!byLength || first.prompt.length === segment.prompt.length)
  for (const segment of byLength ? segments.toSorted((a, b) => a.prompt.length - b.prompt.length) : segments) {
    const last = found.at(-1)
    const first = last?.[0]
    if (last !== undefined && first !== undefined && last.length < most && goesWith(first, segment)) last.push(segment)
    else found.push([segment])
  }
  return found
}
