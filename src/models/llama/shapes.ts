/** How large what a batch needs is: whether its texts have room, and the shape of the rows they are generated in. */
import { usageError } from '../../errors.js'
import { endsOf } from '../decoding/decoding_states.js'
import type { Generation, GenerationOptions } from '../decoding/generation_options.js'
import { longestOf, type TokenCase } from '../files/token_cases.js'
import type { LlamaConfig } from './config.js'
import type { RowsShape } from './rows.js'
import { reachOf } from './weights.js'

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

/** @throws usage `run.capacity` for a case that has no room for the tokens asked for, and for caches that no text could fill */
export function checkCapacity(
  { positions }: LlamaConfig,
  cases: readonly TokenCase[],
  { maxNewTokens }: Generation,
  capacity: number | undefined,
): void {
  if (capacity !== undefined && !(Number.isInteger(capacity) && capacity >= 1 && capacity <= positions)) {
    throw usageError('run.capacity', `capacity is ${capacity}, expected an integer from 1 to ${positions}, the model's positions`)
  }
  const at = cases.findIndex(({ inputIds }) => inputIds.length + maxNewTokens > positions)
  if (at < 0) return
  const length = cases[at]?.inputIds.length ?? 0
  throw usageError(
    'run.capacity',
    `case ${at} has ${length} tokens and may get ${maxNewTokens} more, the model has ${positions} positions`,
    { hint: length < positions ? `ask for at most ${positions - length} new tokens` : 'the text leaves no room for a token' },
  )
}

/** Caches have room for at least so many places, and grow in steps of an eighth of the next power of two, so that shapes recur. */
const leastCapacity = 32

/** Places of caches for texts of at most `length` tokens. */
export function capacityFor(length: number, positions: number): number {
  const step = Math.max(2 ** Math.ceil(Math.log2(length)) / 8, leastCapacity)
  return Math.min(Math.ceil(length / step) * step, positions)
}

export function shapeOf(
  config: LlamaConfig,
  prompts: readonly (readonly number[])[],
  generation: Pick<Generation, 'maxNewTokens' | 'choice'> | undefined,
  capacity = 0,
): RowsShape {
  const longest = prompts.reduce((most, { length }) => Math.max(most, length), 0)
  const length = longest + (generation?.maxNewTokens ?? 0)
  const width = generation?.choice.kind === 'beams' ? generation.choice.width : 1
  return {
    rows: prompts.length * width,
    width,
    capacity: capacityFor(Math.max(length, capacity), config.positions),
    steps: Math.ceil((generation?.maxNewTokens ?? 1) / stepsPerRun) * stepsPerRun,
    ends: endsOf(config.eos),
    reach: reachOf(config, length),
  }
}
