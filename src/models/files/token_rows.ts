/**
 * Where the tokens of a batch lie in the rows of inputs and outputs: padded, `seq` rows a sequence, or packed, one sequence
 * behind the other in at least as many rows as there are tokens.
 */

/** Packed rows are rounded up to steps of this many in the padded ones: a program serves many batches and computes at most 1 % too much. */
const steps = 128
/** And to multiples of this, so that rows of matmuls fill tiles. */
const multiple = 8

/** Packed rows for sequences of the given lengths, padded to `seq`: at least their sum, at most all padded rows. */
export function packedRows(lengths: readonly number[], seq: number): number {
  const padded = lengths.length * seq
  const step = Math.max(multiple, Math.ceil(padded / steps / multiple) * multiple)
  const tokens = lengths.reduce((sum, length) => sum + length, 0)
  return Math.min(padded, Math.ceil(tokens / step) * step)
}

/** The first row of each sequence. */
export function firstRows(lengths: readonly number[], seq: number, packed: boolean): number[] {
  let next = 0
  return lengths.map((length) => {
    const first = next
    next += packed ? length : seq
    return first
  })
}

/** Token ids of a batch in their rows; rows without a token hold `filler`, which only has to be a valid id. */
export function idRows(
  sequences: readonly (readonly number[])[],
  {
    seq,
    rows,
    packed,
    filler,
    lengths = sequences.map((sequence) => sequence.length),
  }: {
    readonly seq: number
    readonly rows: number
    readonly packed: boolean
    readonly filler: number
    /** Tokens of the sequences, where less than that is given of some. */
    readonly lengths?: readonly number[]
  },
): Int32Array {
  const ids = new Int32Array(rows).fill(filler)
  for (const [i, first] of firstRows(lengths, seq, packed).entries()) ids.set(sequences[i] ?? [], first)
  return ids
}
