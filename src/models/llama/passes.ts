/**
 * How prompts are read: in passes of a bounded number of tokens, each a run of one or more sequences. A run's tokens lie one behind the other
 * and go to places behind those that its sequence has cached; what a pass is of, whole prompts or parts of them, does not matter to the
 * program that computes it.
 */
import { encode } from '../../runtime/buffer.js'
import type { Program } from '../../runtime/program.js'

/** Some tokens of a sequence. */
export interface Run {
  /** The cache row, and the number of the sequence. */
  readonly row: number
  /** The place of the first token. */
  readonly first: number
  readonly ids: readonly number[]
}

/** Tokens that are still to be read, of each row: those of `ids` go to places `first` and on. */
export type Unread = Run

/** Runs of at most `most` tokens together, until all tokens are in one. */
export function* passesOf(unread: readonly Unread[], most: number): Generator<readonly Run[]> {
  let pass: Run[] = []
  let room = most
  for (const { row, first, ids } of unread) {
    for (let at = 0; at < ids.length; ) {
      const taken = ids.slice(at, at + room)
      pass.push({ row, first: first + at, ids: taken })
      at += taken.length
      room -= taken.length
      if (room > 0) continue
      yield pass
      pass = []
      room = most
    }
  }
  if (pass.length > 0) yield pass
}

/**
 * Runs of one sequence each, cut at places that are multiples of `tokens`, where texts are read from too: what a token is read with
 * depends on nothing but its text, not on what else is read nor on how much of the text was read before.
 */
export function* fixedPasses(unread: readonly Unread[], tokens: number): Generator<readonly [Run]> {
  for (const { row, first, ids } of unread) {
    if (first % tokens !== 0) throw new Error(`internal: a text is read from place ${first}, no multiple of ${tokens}`)
    for (let at = 0; at < ids.length; at += tokens) yield [{ row, first: first + at, ids: ids.slice(at, at + tokens) }]
  }
}

/**
 * Extents that a pass is computed with: powers of two, so that few programs serve all passes, and eighths of one for its tokens, of which
 * every one that is no token's is computed for nothing.
 */
export interface PassShape {
  readonly tokens: number
  readonly sequences: number
  readonly longest: number
}

const powerOf2 = (least: number): number => 2 ** Math.ceil(Math.log2(least))
const eighths = (least: number): number => {
  const step = Math.max(powerOf2(least) / 8, leastTokens)
  return Math.ceil(least / step) * step
}
/** Rows of a pass at least: matmuls compute as many at once. */
const leastTokens = 8

export function passShape(pass: readonly Run[], most: number): PassShape {
  const lengths = pass.map(({ ids }) => ids.length)
  const tokens = lengths.reduce((sum, length) => sum + length, 0)
  return {
    tokens: Math.max(Math.min(eighths(tokens), Math.max(most, tokens)), leastTokens),
    sequences: powerOf2(pass.length),
    longest: Math.min(powerOf2(Math.max(...lengths)), Math.max(most, ...lengths)),
  }
}

/** The inputs of the program over prompts, but for what is asked of it. @param rows of the caches */
export function passInputs(pass: readonly Run[], { tokens, sequences: count }: PassShape, rows: number) {
  const ids = new Int32Array(tokens)
  const places = new Int32Array(tokens)
  const sequences = new Int32Array(tokens).fill(-1)
  const positions = new Int32Array(tokens)
  const starts = new Int32Array(count)
  const lengths = new Int32Array(count)
  const first = new Int32Array(count)
  const slots = new Int32Array(count)
  const writers = new Int32Array(rows).fill(-1)
  let start = 0
  for (const [sequence, run] of pass.entries()) {
    for (const [position, id] of run.ids.entries()) {
      const at = start + position
      ids[at] = id
      places[at] = run.first + position
      sequences[at] = sequence
      positions[at] = position
    }
    starts[sequence] = start
    lengths[sequence] = run.ids.length
    first[sequence] = run.first
    slots[sequence] = run.row
    writers[run.row] = sequence
    start += run.ids.length
  }
  // Sequences without tokens lie behind the others, as packed rows are to.
  starts.fill(start, pass.length)
  return { ids, places, sequences, positions, starts, lengths, first, slots, writers }
}

/** Integers by their names, those of them that a program takes. */
export const inputsOf = ({ inputs }: Program, given: Readonly<Record<string, Int32Array>>): Record<string, Uint8Array> =>
  Object.fromEntries(
    Object.entries(given).flatMap(([name, values]) => (Object.hasOwn(inputs, name) ? [[name, encode('i32', values)]] : [])),
  )
