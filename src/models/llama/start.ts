/** Initial contents of states for the first step after reading prompts, by method of choosing tokens. */
import { type BeamRule, emptyPool, initialScores } from '../decoding/beam_search.js'
import { drawStates, endIds, type StateValues } from '../decoding/decoding_states.js'
import type { Generation } from '../decoding/generation_options.js'
import { changeStates } from '../decoding/logit_changes.js'
import type { LlamaConfig } from './config.js'
import type { CarriedBeams } from './rope_segments.js'
import type { RowsShape } from './shapes.js'

export interface Start {
  /** Ids of each sequence; all but the last are cached. There may be rows for more sequences. */
  readonly prompts: readonly (readonly number[])[]
  /** Indices of the cases in the whole run, for their seeds. */
  readonly cases: readonly number[]
  /** Number of tokens chosen before; 0 by default. */
  readonly chosen?: number
  /** Maximum number of tokens per text; `maxNewTokens` by default. */
  readonly limits?: readonly number[]
  /** Search state of continued beams. */
  readonly carried?: CarriedBeams | undefined
}

/** Initial contents of states after reading prompts. The first step reads the last token of each. */
export function startStates(
  { vocab, eos, banned }: Pick<LlamaConfig, 'vocab' | 'eos' | 'banned'>,
  generation: Generation,
  shape: Pick<RowsShape, 'rows' | 'width' | 'capacity' | 'steps'>,
  { prompts, cases, chosen = 0, limits = [], carried }: Start,
): StateValues {
  const { choice, maxNewTokens } = generation
  const { rows, width } = shape
  const ofRows = (value: (row: number) => number): Int32Array => Int32Array.from({ length: rows }, (_, row) => value(row))
  // Text of each row; beams that a previous segment began have their own texts.
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
    // Rows without a prompt start as finished.
    finished: ofRows((row) => (row < prompts.length ? 0 : 1)),
    limit: ofRows((row) => limits[row] ?? maxNewTokens),
    ...drawStates(
      choice,
      Array.from({ length: rows }, (_, row) => cases[row] ?? 0),
    ),
  }
}

/** The prompt of each row, `width` rows per prompt. */
const ofTexts = (prompts: Start['prompts'], width: number): Start['prompts'] =>
  width === 1 ? prompts : prompts.flatMap((prompt) => Array.from({ length: width }, () => prompt))

/**
 * Initial states of beams. All beams of a sequence begin with the last token of its prompt, and read the cached prompt from the row of the
 * first beam. Their own tokens are cached after the longest prompt.
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
  // Sequences without a prompt start as finished.
  if (rule === 'plain') return { ...values, finished: ofRows((row) => (row < prompts.length * width ? 0 : 1)) }
  const finished = Int32Array.from({ length: sequences }, (_, at) => (at < prompts.length ? 0 : 1))
  return { ...values, finished, ...emptyPool(sequences, width) }
}

/** Initial states of continued beams, after the text of each was read into its row except for the last token. */
function carriedStates(
  { rows, capacity, steps }: Pick<RowsShape, 'rows' | 'capacity' | 'steps'>,
  { texts, states, history, parents, losses }: CarriedBeams,
): StateValues {
  const first = (texts[0]?.length ?? 1) - 1
  const ofRows = (value: (row: number) => number): Int32Array => Int32Array.from({ length: rows }, (_, row) => value(row))
  // Rows of other sequences start as finished.
  const cached = ofRows((row) => (row < texts.length ? first : 0))
  const beams = new Int32Array(rows * capacity)
  for (let row = 0; row < rows; row++) beams.fill(row, row * capacity, (row + 1) * capacity)
  const recorded = (values: Int32Array): Int32Array => {
    const all = new Int32Array(steps * rows).fill(-1)
    all.set(values)
    return all
  }
  return {
    ...states,
    step: Int32Array.of(history.length / rows),
    slot: Int32Array.of(first),
    first: Int32Array.of(first),
    words: ofRows((row) => texts[row]?.at(-1) ?? 0),
    places: cached,
    cached,
    beams,
    history: recorded(history),
    parents: recorded(parents),
    ...(losses !== undefined && { losses: Float32Array.from({ length: steps * rows }, (_, at) => losses[at] ?? 0) }),
  }
}
