/**
 * Where the tokens of a batch lie in the rows of inputs and outputs: padded, `seq` rows a sequence, or packed, one sequence
 * behind the other in at least as many rows as there are tokens.
 */

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
