/** Sequences of differing lengths for generated tests, packed one behind the other: where each begins, and whose row is whose. */
import type { Random } from './random.js'

export type Extents = Readonly<Record<string, number>>

/** An extent; 1 where a kernel has no such dimension. */
export const at = (dims: Extents, name: string): number => dims[name] ?? 1

/** Lengths of packed sequences, over and over: one token, and around the keys a warp holds. */
export const raggedLengths = [3, 1, 33, 32, 31, 7, 2]
export const raggedLength = (sequence: number): number => raggedLengths[sequence % raggedLengths.length] ?? 1
const sumOf = (lengths: readonly number[]): number => lengths.reduce((sum, length) => sum + length, 0)
const raggedStart = (sequence: number): number =>
  Math.floor(sequence / raggedLengths.length) * sumOf(raggedLengths) +
  sumOf(raggedLengths.slice(0, sequence % raggedLengths.length))

/** Packed sequences whose rows are `tokens`, with two rows to spare behind the last. */
export const packed = (batch: string, tokens: string) =>
  ({
    extents: { [tokens]: (dims: Extents) => raggedStart(at(dims, batch)) + 2 },
    inputs: {
      starts: (_: Random, __: Extents, i: number) => raggedStart(i),
      lengths: (_: Random, __: Extents, i: number) => raggedLength(i),
    },
  }) as const

/** The sequence of a packed row, and its position; -1 and 0 behind the last. */
function placeOf(row: number, sequences: number): readonly [sequence: number, position: number] {
  if (row >= raggedStart(sequences)) return [-1, 0]
  const round = Math.floor(row / sumOf(raggedLengths)) * raggedLengths.length
  const within = raggedLengths.findIndex((length, i) => row < raggedStart(round + i) + length)
  return [round + within, row - raggedStart(round + within)]
}

/** Rows `tokens` gathered from padded ones of sequences of at most `seq`. */
export const gatheredFrom = (batch: string, seq: string, tokens: string) =>
  ({
    extents: { [tokens]: (dims: Extents) => raggedStart(at(dims, batch)) + 2, [seq]: () => Math.max(...raggedLengths) },
    inputs: {
      sequences: (_: Random, dims: Extents, i: number) => placeOf(i, at(dims, batch))[0],
      positions: (_: Random, dims: Extents, i: number) => placeOf(i, at(dims, batch))[1],
    },
  }) as const
