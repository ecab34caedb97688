/**
 * Passes over prompts, of a bounded number of tokens. Each pass consists of runs of one or more sequences. A run's tokens are consecutive
 * and are cached at the positions after those that its sequence has cached. Whether a pass holds whole prompts or parts of them makes no
 * difference to its program.
 */
import { encode } from '../../runtime/buffer.js'
import type { Program } from '../../runtime/program.js'

/** Consecutive tokens of a sequence. */
export interface Run {
  /** Cache row, which is also the number of the sequence. */
  readonly row: number
  /** Position of the first token. */
  readonly first: number
  readonly ids: readonly number[]
}

/** Unread tokens of a row: `ids` are cached from position `first` on. */
export type Unread = Run

/** Splits unread tokens into passes of at most `most` tokens. */
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
 * Passes of one sequence each, split at multiples of `tokens`, where reading also begins. The tokens that share a token's pass then depend
 * only on its text, not on other texts or on how much of the text was read before.
 */
export function* fixedPasses(unread: readonly Unread[], tokens: number): Generator<readonly [Run]> {
  for (const { row, first, ids } of unread) {
    if (first % tokens !== 0) throw new Error(`internal: a text is read from position ${first}, expected a multiple of ${tokens}`)
    for (let at = 0; at < ids.length; at += tokens) yield [{ row, first: first + at, ids: ids.slice(at, at + tokens) }]
  }
}

/**
 * Extents that a pass is padded to: powers of two, so that few programs serve all passes. The number of tokens is rounded up only to an
 * eighth of a power of two, because padding tokens are computed too.
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
/** Minimum number of rows of a pass: matmuls compute this many at once. */
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

/** Inputs of the prompt program, except for the requested outputs. @param rows of the caches */
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
  // Sequences without tokens come after the others, as packed rows require.
  starts.fill(start, pass.length)
  return { ids, places, sequences, positions, starts, lengths, first, slots, writers }
}

/** Encodes those of the named integer arrays that a program takes as inputs. */
export const inputsOf = ({ inputs }: Program, given: Readonly<Record<string, Int32Array>>): Record<string, Uint8Array> =>
  Object.fromEntries(
    Object.entries(given).flatMap(([name, values]) => (Object.hasOwn(inputs, name) ? [[name, encode('i32', values)]] : [])),
  )
