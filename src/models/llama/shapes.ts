/** How large what a batch needs is: whether its texts have room, and the shape of the rows they are generated in. */
import { usageError } from '../../errors.js'
import { endsOf } from '../decoding/decoding_states.js'
import type { Generation, GenerationOptions } from '../decoding/generation_options.js'
import { longestOf, type TokenCase } from '../parts/token_cases.js'
import type { LlamaConfig } from './config.js'
import type { RopeSegment } from './rope_segments.js'
import type { Reach } from './weights.js'

export interface RowsShape {
  /** Rows of the caches: sequences times beams. */
  readonly rows: number
  /** Beams of each sequence, whose rows lie side by side; 1 where one text is followed. */
  readonly width: number
  /** Places of the caches. */
  readonly capacity: number
  /** Steps there is room for. */
  readonly steps: number
  /** Steps of one run. */
  readonly perRun: number
  /** How many end ids there are; at least 1. */
  readonly ends: number
  readonly reach: Reach
  /** Tokens that every pass over a prompt is computed for; undefined where passes are as large as what is read. */
  readonly pass: number | undefined
}

/** Logits of a part of a row where one word is chosen: so few that the parts of one row fill a device. */
const partLength = 1024

/** Parts of a row of logits that one word is chosen from. */
export const wordParts = (vocab: number): number => Math.ceil(vocab / partLength)

/** Steps between two looks at what has ended. */
export const stepsPerRun = 8

/** Without a limit of its own, a text ends where the model's positions do. */
export function limited({ positions }: LlamaConfig, cases: readonly TokenCase[], given: GenerationOptions): GenerationOptions {
  if (given.maxNewTokens !== undefined) return given
  const room = positions - longestOf(cases)
  return room > 0 && room < usualTokens ? { ...given, maxNewTokens: room } : given
}

/** Tokens of a text where nothing says how many: what `resolveGeneration` takes. */
const usualTokens = 128

/** @throws usage `run.capacity` for a capacity that is none */
function expectCapacity(positions: number, capacity: number | undefined): void {
  if (capacity === undefined || (Number.isInteger(capacity) && capacity >= 1 && capacity <= positions)) return
  throw usageError('run.capacity', `capacity is ${capacity}, expected an integer from 1 to ${positions}, the model's positions`)
}

/** @throws usage `run.capacity` for a case that has no room for the tokens asked for, and for caches that no text could fill */
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

/** Caches have room for at least so many places, and grow in steps of an eighth of the next power of two, so that shapes recur. */
const leastCapacity = 32

/** Places of caches for texts of at most `length` tokens. */
export function capacityFor(length: number, positions: number): number {
  const step = Math.max(2 ** Math.ceil(Math.log2(length)) / 8, leastCapacity)
  return Math.min(Math.ceil(length / step) * step, positions)
}

/** The shape that legs run in together, which are turned by the same tables and as many tokens into their texts. */
export function shapeOf(
  config: LlamaConfig,
  legs: readonly RopeSegment[],
  generation: Pick<Generation, 'choice' | 'maxNewTokens'> | undefined,
  { capacity = 0, invariant }: { readonly capacity?: number | undefined; readonly invariant?: number | undefined } = {},
): RowsShape {
  const length = Math.max(...legs.map(({ prompt, chosen, limit }) => prompt.length + limit - chosen))
  const [first] = legs
  const chosen = first?.chosen ?? 0
  const steps = Math.max(...legs.map(({ limit }) => limit)) - chosen
  const perRun = generation === undefined || !isCut(legs, generation) ? stepsPerRun : commonDivisor(steps, stepsPerRun)
  const width = generation?.choice.kind === 'beams' ? generation.choice.width : 1
  const places =
    invariant === undefined ? capacityFor(Math.max(length, capacity), config.positions) : fixedCapacity(config, capacity)
  return {
    rows: (invariant ?? legs.length) * width,
    width,
    capacity: places,
    steps: chosen + Math.max(Math.ceil(steps / perRun), 1) * perRun,
    perRun,
    ends: endsOf(config.eos),
    reach: first?.reach ?? 'short',
    pass: invariant === undefined ? undefined : Math.min(places, mostFixedTokens),
  }
}

/** Places where nothing says how many, and tokens of a pass, of what is computed in one shape. */
const usualFixedCapacity = 4096
const mostFixedTokens = 512
const mostFixedRows = 1024

/** Places of caches that are the same for all texts. @param asked 0: not said */
const fixedCapacity = ({ positions }: LlamaConfig, asked: number): number =>
  asked > 0 ? asked : Math.min(positions, usualFixedCapacity)

/** @throws usage `run.invariant`, `run.capacity` for a text that caches of one size have no room for */
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
      `invariant is ${invariant}, expected an integer from 1 to ${mostFixedRows}: rows that all runs have`,
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

/** Beams that another leg goes on from: their steps must end where the leg does. */
const isCut = (legs: readonly RopeSegment[], { choice, maxNewTokens }: Pick<Generation, 'choice' | 'maxNewTokens'>): boolean =>
  choice.kind === 'beams' && legs.some(({ limit }) => limit < maxNewTokens)

const commonDivisor = (a: number, b: number): number => (b === 0 ? a : commonDivisor(b, a % b))

/** What batches are made by. */
export interface Batching {
  /** Legs of a batch at most. */
  readonly most: number
  readonly generation?: Pick<Generation, 'choice' | 'maxNewTokens'>
  /** Rows that all runs have, where results must not depend on the batch. */
  readonly invariant?: number | undefined
}

/**
 * Legs that run together, all turned by the same tables. Beams write behind the longest prompt of a batch, and sums over their past follow
 * from where it lies: where results must not depend on the batch, they run with prompts of their own length. Those that another leg goes on
 * from run alone.
 */
export function batchesOf(legs: readonly RopeSegment[], { most, generation, invariant }: Batching): RopeSegment[][] {
  const found: RopeSegment[][] = []
  const beams = generation?.choice.kind === 'beams'
  const byLength = beams && invariant !== undefined
  const goesWith = (first: RopeSegment, leg: RopeSegment): boolean =>
    first.reach === leg.reach &&
    !(generation !== undefined && isCut([first, leg], generation)) &&
    (!byLength || first.prompt.length === leg.prompt.length)
  for (const leg of byLength ? legs.toSorted((a, b) => a.prompt.length - b.prompt.length) : legs) {
    const last = found.at(-1)
    const first = last?.[0]
    if (last !== undefined && first !== undefined && last.length < most && goesWith(first, leg)) last.push(leg)
    else found.push([leg])
  }
  return found
}
