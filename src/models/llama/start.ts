/** What states hold before the first step behind prompts that were read, by how words are chosen. */
import { type BeamRule, emptyPool, initialScores } from '../decoding/beam_search.js'
import { drawStates, endIds, type StateValues } from '../decoding/decoding_states.js'
import type { Generation } from '../decoding/generation_options.js'
import { changeStates } from '../decoding/logit_changes.js'
import type { LlamaConfig } from './config.js'
import type { CarriedBeams } from './rope_segments.js'
import type { RowsShape } from './shapes.js'

export interface Start {
  /** Ids of each sequence; all but the last are cached. There may be rows for more. */
  readonly prompts: readonly (readonly number[])[]
  /** The cases' places in the whole run, for their seeds. */
  readonly cases: readonly number[]
  /** Tokens that were chosen before, 0 by default, and how many each text may have, `maxNewTokens` by default. */
  readonly chosen?: number
  readonly limits?: readonly number[]
  /** Beams that go on. */
  readonly carried?: CarriedBeams | undefined
}

/** What states hold before the first step behind prompts. The first step takes up the last token of each. */
export function startStates(
  { vocab, eos, banned }: Pick<LlamaConfig, 'vocab' | 'eos' | 'banned'>,
  generation: Generation,
  shape: Pick<RowsShape, 'rows' | 'width' | 'capacity' | 'steps'>,
  { prompts, cases, chosen = 0, limits = [], carried }: Start,
): StateValues {
  const { choice, maxNewTokens } = generation
  const { rows, width } = shape
  const ofRows = (value: (row: number) => number): Int32Array => Int32Array.from({ length: rows }, (_, row) => value(row))
  // The text of each row, where another leg goes on with beams.
  const texts = carried?.texts ?? ofTexts(prompts, width)
  const common = {
    ends: endIds(eos),
    ...(banned.length > 0 && { banned: Int32Array.from(banned), always: ofRows(() => 2 ** 31 - 1) }),
    ...changeStates(generation, { rows, vocab, places: shape.capacity, textOf: (row) => texts[row] ?? [] }),
  }
  if (carried !== undefined) return { ...common, ...carriedStates(shape, carried) }
  if (choice.kind === 'beams') return { ...common, ...beamStates(choice.rule, shape, prompts) }
  return {
    ...common,
    step: Int32Array.of(chosen),
    words: ofRows((row) => prompts[row]?.at(-1) ?? 0),
    places: ofRows((row) => (prompts[row]?.length ?? 1) - 1),
    // Rows without a prompt have ended before they begin.
    finished: ofRows((row) => (row < prompts.length ? 0 : 1)),
    limit: ofRows((row) => limits[row] ?? maxNewTokens),
    ...drawStates(
      choice,
      Array.from({ length: rows }, (_, row) => cases[row] ?? 0),
    ),
  }
}

/** The prompt of each row, of which `width` belong to one. */
const ofTexts = (prompts: Start['prompts'], width: number): Start['prompts'] =>
  width === 1 ? prompts : prompts.flatMap((prompt) => Array.from({ length: width }, () => prompt))

/**
 * Of beams. All beams of a sequence begin with the last token of its prompt, and read what is cached of that where it was read to: in the
 * cache of the first. What they choose is at places behind the longest prompt.
 */
function beamStates(
  rule: BeamRule,
  { rows, width, capacity }: Pick<RowsShape, 'rows' | 'width' | 'capacity'>,
  prompts: Start['prompts'],
): StateValues {
  const first = prompts.reduce((most, { length }) => Math.max(most, length - 1), 0)
  const promptOf = (row: number): readonly number[] => prompts[Math.floor(row / width)] ?? [0]
  const ofRows = (value: (row: number) => number): Int32Array => Int32Array.from({ length: rows }, (_, row) => value(row))
  const sequences = rows / width
  const beams = new Int32Array(rows * capacity)
  for (let row = 0; row < rows; row++) {
    beams.fill(row - (row % width), row * capacity, row * capacity + first)
    beams.fill(row, row * capacity + first, (row + 1) * capacity)
  }
  const cached = ofRows((row) => promptOf(row).length - 1)
  const values = {
    step: new Int32Array(1),
    slot: Int32Array.of(first),
    first: Int32Array.of(first),
    words: ofRows((row) => promptOf(row).at(-1) ?? 0),
    places: cached,
    cached,
    beams,
    cumulative: initialScores(sequences, width, rule),
  }
  // Sequences without a prompt have ended before they begin.
  if (rule === 'plain') return { ...values, finished: ofRows((row) => (row < prompts.length * width ? 0 : 1)) }
  const finished = Int32Array.from({ length: sequences }, (_, at) => (at < prompts.length ? 0 : 1))
  return { ...values, finished, ...emptyPool(sequences, width) }
}

/** What states hold when the text of each beam has been read into its row, but for the last token. */
function carriedStates(
  { rows, capacity, steps }: Pick<RowsShape, 'rows' | 'capacity' | 'steps'>,
  { texts, kept, history, parents }: CarriedBeams,
): StateValues {
  const first = (texts[0]?.length ?? 1) - 1
  const ofRows = (value: (row: number) => number): Int32Array => Int32Array.from({ length: rows }, (_, row) => value(row))
  // Rows of other sequences have ended before they begin.
  const cached = ofRows((row) => (row < texts.length ? first : 0))
  const beams = new Int32Array(rows * capacity)
  for (let row = 0; row < rows; row++) beams.fill(row, row * capacity, (row + 1) * capacity)
  const recorded = (values: Int32Array): Int32Array => {
    const all = new Int32Array(steps * rows).fill(-1)
    all.set(values)
    return all
  }
  return {
    ...kept,
    step: Int32Array.of(history.length / rows),
    slot: Int32Array.of(first),
    first: Int32Array.of(first),
    words: ofRows((row) => texts[row]?.at(-1) ?? 0),
    places: cached,
    cached,
    beams,
    history: recorded(history),
    parents: recorded(parents),
  }
}
