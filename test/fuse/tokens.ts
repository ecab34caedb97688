/** Three sequences of differing lengths, padded and packed: data of the tests of packed graphs. */

export const lengths = [3, 1, 5]
/** Sequences, positions, packed rows (two more than tokens), heads and their size, inner width, and those of embeddings and classes. */
export const dims = { b: 3, s: 5, t: 11, h: 2, d: 4, i: 6, v: 17, u: 2, p: 5, c: 3 }
export const tokens = lengths.reduce((sum, length) => sum + length, 0)
/** The padded position of each packed token. */
const places = lengths.flatMap((length, b) => Array.from({ length }, (_, s) => b * dims.s + s))

/** Rows of a padded matrix that have tokens, in packed order; the rows after them are zero. */
export function pack(values: ArrayLike<number>, rows: number): Float64Array {
  const width = values.length / (dims.b * dims.s)
  const result = new Float64Array(rows * width)
  for (const [row, place] of places.entries())
    for (let c = 0; c < width; c++) result[row * width + c] = values[place * width + c] ?? Number.NaN
  return result
}
