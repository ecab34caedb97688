/** Packed sequences of differing lengths for generated tests: the start of each, and the sequence of each row. */

export type Extents = Readonly<Record<string, number>>

/** An extent; 1 if a kernel has no such dimension. */
export const at = (dims: Extents, name: string): number => dims[name] ?? 1

/** Cyclic lengths of packed sequences: one token, and around the number of keys that a warp holds. */
const raggedLengths = [3, 1, 33, 32, 31, 7, 2]
export const longestRagged = Math.max(...raggedLengths)
export const raggedLength = (sequence: number): number => raggedLengths[sequence % raggedLengths.length] ?? 1
const sumOf = (lengths: readonly number[]): number => lengths.reduce((sum, length) => sum + length, 0)
export const raggedStart = (sequence: number): number =>
  Math.floor(sequence / raggedLengths.length) * sumOf(raggedLengths) +
  sumOf(raggedLengths.slice(0, sequence % raggedLengths.length))

/** Rows of the given number of sequences, and two unused ones after the last. */
export const raggedRows = (sequences: number): number => raggedStart(sequences) + 2

/** The sequence of a packed row, and its position; -1 and 0 after the last. */
export function placeOf(row: number, sequences: number): readonly [sequence: number, position: number] {
  if (row >= raggedStart(sequences)) return [-1, 0]
  const round = Math.floor(row / sumOf(raggedLengths)) * raggedLengths.length
  const within = raggedLengths.findIndex((length, i) => row < raggedStart(round + i) + length)
  return [round + within, row - raggedStart(round + within)]
}
