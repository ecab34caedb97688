/**
 * BERT written out over one sequence under a mask, in double precision, from the tensors of a checkpoint by their own names, with the rule of Hugging
 * Face: the score of a removed key is a number below all others, so a query without a key yields the mean of all values. It shares nothing with the
 * code under test: no graphs, no ops, no name tables.
 */
import type { StoredTensor } from '../../src/checkpoint/safetensors.js'
import { erf } from '../../src/ir/erf.js'
import { decode } from '../../src/runtime/buffer.js'

type Row = readonly number[]
type Rows = readonly Row[]

/** Row s marks the tokens that token s attends to. */
export type PairMask = readonly (readonly number[])[]

export interface BertReference {
  readonly layers: number
  readonly heads: number
  readonly eps: number
}

/** Below all scores: every exponential of a difference from it is 0, or 1 if there is nothing else. */
const removed = -1e30

/** Arithmetic of a mask: score of an excluded pair from its score, and a number that is added to the softmax's denominator. */
export interface Masking {
  readonly masked: (score: number) => number
  readonly eps: number
}

const removing: Masking = { masked: () => removed, eps: 0 }

/** Token rows after the last layer. */
export function encodedBy(
  { layers, heads, eps }: BertReference,
  tensors: ReadonlyMap<string, StoredTensor>,
  ids: readonly number[],
  mask: PairMask,
  masking?: Masking,
): Rows {
  const values = valuesOf(tensors)
  const [words, places, types] = ['word', 'position', 'token_type'].map((table) =>
    values(`embeddings.${table}_embeddings.weight`),
  )
  const hidden = values('embeddings.LayerNorm.weight').length
  const embedded = ids.map((id, s) =>
    Array.from(
      { length: hidden },
      (_, j) => (words?.[id * hidden + j] ?? 0) + (places?.[s * hidden + j] ?? 0) + (types?.[j] ?? 0),
    ),
  )
  let x = normOf(embedded, values('embeddings.LayerNorm.weight'), values('embeddings.LayerNorm.bias'), eps)
  for (let i = 0; i < layers; i++)
    x = layerBy({ heads, eps }, (name) => values(`encoder.layer.${i}.${name}`), x, x, mask, masking)
  return x
}

/** A layer whose tokens attend those of `memory`, which may be their own. @param values tensors by their names in a layer */
export function layerBy(
  { heads, eps }: Omit<BertReference, 'layers'>,
  values: (name: string) => ArrayLike<number>,
  x: Rows,
  memory: Rows,
  mask: PairMask,
  masking: Masking = removing,
): Rows {
  const norm = (name: string, rows: Rows): Rows => normOf(rows, values(`${name}.weight`), values(`${name}.bias`), eps)
  const linear = (name: string, rows: Rows): Rows => linearOf(rows, values(`${name}.weight`), values(`${name}.bias`))
  const part = (name: string, rows: Rows): Rows => linear(`attention.self.${name}`, rows)
  const attended = attention(part('query', x), part('key', memory), part('value', memory), heads, mask, masking)
  const first = norm('attention.output.LayerNorm', plus(linear('attention.output.dense', attended), x))
  const inner = linear('intermediate.dense', first).map((row) => row.map((v) => 0.5 * v * (1 + erf(v / Math.SQRT2))))
  return norm('output.LayerNorm', plus(linear('output.dense', inner), first))
}

/** Logits of the tokens, by the classifier of a checkpoint. */
export const classifiedBy = (tensors: ReadonlyMap<string, StoredTensor>, states: Rows): Rows =>
  linearOf(states, valuesOf(tensors)('classifier.weight'), valuesOf(tensors)('classifier.bias'))

/** Values of a tensor, whose name may have the prefix of a model below a head. */
const valuesOf =
  (tensors: ReadonlyMap<string, StoredTensor>) =>
  (name: string): ArrayLike<number> => {
    const tensor = tensors.get(name) ?? tensors.get(`bert.${name}`)
    if (tensor === undefined) throw new Error(`no tensor ${name}`)
    return decode('f32', tensor.data)
  }

const plus = (x: Rows, y: Rows): Rows => x.map((row, s) => row.map((value, j) => value + (y[s]?.[j] ?? 0)))

const linearOf = (rows: Rows, weight: ArrayLike<number>, bias: ArrayLike<number>): Rows =>
  rows.map((row) => Array.from(bias, (b, j) => row.reduce((sum, v, k) => sum + v * (weight[j * row.length + k] ?? 0), b)))

const normOf = (rows: Rows, gamma: ArrayLike<number>, beta: ArrayLike<number>, eps: number): Rows =>
  rows.map((row) => {
    const mean = row.reduce((sum, v) => sum + v, 0) / row.length
    const variance = row.reduce((sum, v) => sum + (v - mean) ** 2, 0) / row.length
    return row.map((v, j) => ((v - mean) / Math.sqrt(variance + eps)) * (gamma[j] ?? 0) + (beta[j] ?? 0))
  })

/** Attention head by head to the rows of `key` that the mask keeps; the heads of a token are contiguous. */
function attention(query: Rows, key: Rows, value: Rows, heads: number, mask: PairMask, { masked, eps }: Masking): Rows {
  return query.map((row, s) => {
    const size = row.length / heads
    return Array.from({ length: row.length }, (_, at) => at).flatMap((at) => {
      if (at % size !== 0) return []
      const scores = key.map((other, t) => {
        let sum = 0
        for (let j = at; j < at + size; j++) sum += (row[j] ?? 0) * (other[j] ?? 0)
        return mask[s]?.[t] === 0 ? masked(sum / Math.sqrt(size)) : sum / Math.sqrt(size)
      })
      const top = Math.max(...scores)
      const weights = scores.map((score) => Math.exp(score - top))
      const total = weights.reduce((sum, weight) => sum + weight, eps)
      return Array.from({ length: size }, (_, j) =>
        weights.reduce((sum, w, t) => sum + (w / total) * (value[t]?.[at + j] ?? 0), 0),
      )
    })
  })
}
