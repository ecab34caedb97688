/** Row counts of packed batches of sequences (without padding). */

/** Packed rows are rounded up to a multiple of 1/128 of the padded rows: a program serves many batches, with under 2 % of extra rows from 1,024 padded rows on. */
const steps = 128
/** That multiple is rounded up to a multiple of 8, so that rows of matmuls fill tiles. */
const multiple = 8

/** Packed rows for sequences of the given lengths, padded to `seq`: at least their sum, at most all padded rows. */
export function packedRows(lengths: ArrayLike<number>, seq: number): number {
  const padded = lengths.length * seq
  const step = Math.max(multiple, Math.ceil(padded / steps / multiple) * multiple)
  const tokens = Array.from(lengths).reduce((sum, length) => sum + length, 0)
  return Math.min(padded, Math.ceil(tokens / step) * step)
}
