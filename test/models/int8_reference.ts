/**
 * A quantised encoder layer written out by hand, one function per edge, over logical row-major values. Sums of integers are exact; scaling between
 * integers and floats uses float32 in the order of the ops, and everything after a function is in double precision.
 */

const f = Math.fround

/** The nearest integer, ties to even, within [-127, 127]. */
export function toInt8(x: number): number {
  const floor = Math.floor(x)
  const rest = x - floor
  const rounded = rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor
  return Math.max(-127, Math.min(127, rounded))
}

type Values = ArrayLike<number>
const at = (values: Values, i: number): number => values[i] ?? Number.NaN

/** x (m x k) times w transposed (n x k), in integers. */
export function product(x: Values, w: Values, m: number, n: number, k: number): Float64Array {
  return Float64Array.from({ length: m * n }, (_, i) => {
    const [row, column] = [Math.floor(i / n), i % n]
    let sum = 0
    for (let c = 0; c < k; c++) sum += at(x, row * k + c) * at(w, column * k + c)
    return sum
  })
}

/** Dequantised matmul of an activation and a weight, plus its bias: in float32, like the ops. */
export const biased = (sums: Values, step: number, steps: Values, bias: Values): Float64Array =>
  Float64Array.from(sums, (sum, i) => {
    const column = i % steps.length
    return f(f(f(sum) * f(step * at(steps, column))) + at(bias, column))
  })

/** A matmul of two activations as floats. */
export const scaled = (sums: Values, step: number, otherStep: number): Float64Array =>
  Float64Array.from(sums, (sum) => f(f(sum) * f(step * otherStep)))

export const quantised = (values: Values, inverse: number): Float64Array =>
  Float64Array.from(values, (value) => toInt8(f(value * inverse)))

export const dequantised = (values: Values, step: number): Float64Array => Float64Array.from(values, (value) => f(value * step))

/** Elementwise sum. */
export const plus = (a: Values, b: Values): Float64Array => Float64Array.from(a, (value, i) => value + at(b, i))

export function layerNorm(rows: Values, gamma: Values, beta: Values, eps: number): Float64Array {
  const n = gamma.length
  const normal = new Float64Array(rows.length)
  for (let row = 0; row * n < rows.length; row++) {
    const of = (c: number): number => at(rows, row * n + c)
    let [mean, variance] = [0, 0]
    for (let c = 0; c < n; c++) mean += of(c) / n
    for (let c = 0; c < n; c++) variance += (of(c) - mean) ** 2 / n
    for (let c = 0; c < n; c++) normal[row * n + c] = ((of(c) - mean) / Math.sqrt(variance + eps)) * at(gamma, c) + at(beta, c)
  }
  return normal
}

export const gelu = (values: Values, erf: (x: number) => number): Float64Array =>
  Float64Array.from(values, (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)))

export interface Heads {
  readonly batch: number
  readonly seq: number
  readonly heads: number
  readonly headDim: number
  readonly lengths: readonly number[]
  /** Pairs that count, (batch, query, key); all if undefined. */
  readonly mask?: readonly number[] | undefined
}

/** Query times key for every pair of a head: (batch, heads, query, key). Both are (batch, seq, heads, headDim). */
export function scores(query: Values, key: Values, { batch, seq, heads, headDim }: Heads): Float64Array {
  const out = new Float64Array(batch * heads * seq * seq)
  let i = 0
  for (let b = 0; b < batch; b++)
    for (let h = 0; h < heads; h++)
      for (let s = 0; s < seq; s++)
        for (let t = 0; t < seq; t++) {
          let sum = 0
          for (let d = 0; d < headDim; d++)
            sum += at(query, ((b * seq + s) * heads + h) * headDim + d) * at(key, ((b * seq + t) * heads + h) * headDim + d)
          out[i++] = sum
        }
  return out
}

/** Softmax over the keys of a sequence that its query may attend, or over all of them if it may attend none; 0 for the others. */
export function softmax(values: Values, factor: number, { seq, heads, lengths, mask }: Heads): Float64Array {
  const out = new Float64Array(values.length)
  for (let row = 0; row * seq < values.length; row++) {
    const sequence = Math.floor(row / (heads * seq))
    const length = lengths[sequence] ?? seq
    const kept = (t: number): boolean => mask === undefined || mask[(sequence * seq + (row % seq)) * seq + t] === 1
    const scaledRow = Array.from({ length }, (_, t) => (kept(t) ? at(values, row * seq + t) * factor : -1e30))
    const top = Math.max(...scaledRow)
    const total = scaledRow.reduce((sum, value) => sum + Math.exp(value - top), 0)
    scaledRow.forEach((value, t) => {
      out[row * seq + t] = Math.exp(value - top) / total
    })
  }
  return out
}

/** Probabilities (batch, heads, query, key) times values (batch, seq, heads, headDim): in the shape of the latter. */
export function context(probabilities: Values, value: Values, { batch, seq, heads, headDim }: Heads): Float64Array {
  const out = new Float64Array(batch * seq * heads * headDim)
  for (let b = 0; b < batch; b++)
    for (let s = 0; s < seq; s++)
      for (let h = 0; h < heads; h++)
        for (let d = 0; d < headDim; d++) {
          let sum = 0
          for (let t = 0; t < seq; t++)
            sum += at(probabilities, ((b * heads + h) * seq + s) * seq + t) * at(value, ((b * seq + t) * heads + h) * headDim + d)
          out[((b * seq + s) * heads + h) * headDim + d] = sum
        }
  return out
}

/** Rows of padded tokens from packed ones, and back; rows without a token are zero. */
export function unpacked(rows: Values, width: number, { batch, seq, lengths }: Heads): Float64Array {
  const out = new Float64Array(batch * seq * width)
  let from = 0
  lengths.forEach((length, b) => {
    for (let i = 0; i < length * width; i++) out[b * seq * width + i] = at(rows, from * width + i)
    from += length
  })
  return out
}

export function packed(rows: Values, width: number, tokens: number, { seq, lengths }: Heads): Float64Array {
  const out = new Float64Array(tokens * width)
  let to = 0
  lengths.forEach((length, b) => {
    for (let i = 0; i < length * width; i++) out[to * width + i] = at(rows, b * seq * width + i)
    to += length
  })
  return out
}
