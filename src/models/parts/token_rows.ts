/**
 * Layout of a batch's tokens in the rows of inputs and outputs: padded to `seq` rows per sequence, or packed, with the sequences
 * concatenated in at least as many rows as there are tokens.
 */
import { encode } from '../../runtime/buffer.js'

export interface BatchShape {
  readonly batch: number
  /** Positions that sequences are padded to. */
  readonly seq: number
  /** Rows of packed tensors: at least the number of tokens. By default `batch * seq`, enough for full sequences. */
  readonly tokens?: number
}

/** Extents of the dimensions that a batch determines. */
export const batchDims = ({ batch, seq, tokens = batch * seq }: BatchShape) => ({ b: batch, s: seq, t: tokens })

/** First row of each sequence. */
export function firstRows(lengths: readonly number[], seq: number, packed: boolean): number[] {
  let next = 0
  return lengths.map((length) => {
    const first = next
    next += packed ? length : seq
    return first
  })
}

/** Rows of a batch. */
interface Rows {
  readonly seq: number
  readonly rows: number
  readonly packed: boolean
  readonly filler: number
}

/**
 * Token ids of a batch in their rows. Rows without a token hold `filler`, which may be any valid id.
 * @param place with the lengths of the sequences if fewer values are given for some of them
 */
export function idRows(
  sequences: readonly (readonly number[])[],
  { seq, rows, packed, filler, lengths }: Rows & { readonly lengths?: readonly number[] },
): Int32Array {
  const ids = new Int32Array(rows).fill(filler)
  const first = firstRows(lengths ?? sequences.map(({ length }) => length), seq, packed)
  for (const [i, sequence] of sequences.entries()) ids.set(sequence, first[i])
  return ids
}

/** The token inputs of a batch: ids and sequence lengths. */
export const idInputs = (sequences: readonly (readonly number[])[], place: Rows): Record<'ids' | 'lengths', Uint8Array> => ({
  ids: encode('i32', idRows(sequences, place)),
  lengths: encode('i32', Int32Array.from(sequences.map(({ length }) => length))),
})
