/**
 * Pegasus' and Marian's encoder written out over one source, in double precision, from the tensors of a checkpoint by their own names. It shares
 * nothing with the code under test: no graphs, no ops, no name tables.
 */
import type { Safetensors } from '../../src/checkpoint/safetensors.js'
import { decode } from '../../src/runtime/buffer.js'

export type Matrix = readonly (readonly number[])[]

/** One source: its memory, and for each decoder layer the keys and values of it. One row a token. */
export interface EncodedSource {
  readonly memory: Matrix
  readonly keys: readonly Matrix[]
  readonly values: readonly Matrix[]
}

export interface ReferenceConfig {
  readonly hidden: number
  readonly layers: number
  readonly decoderLayers: number
  readonly heads: number
  readonly embedScale: number
  readonly eps?: number
  readonly preNorm: boolean
  readonly activation: (x: number) => number
}

/** Parts of both stacks: vectors, linear layers and norms by the names of a checkpoint, and embedded tokens. */
/** The table a stack embeds with: its own, or the one that both share. */
export function wordsOf({ tensors }: Safetensors, side: 'encoder' | 'decoder'): ArrayLike<number> {
  const table = tensors.get(`model.${side}.embed_tokens.weight`) ?? tensors.get('model.shared.weight')
  if (table === undefined) throw new Error(`the ${side} has no embeddings`)
  return decode('f32', table.data)
}

export function partsOf({ hidden, embedScale, eps = 1e-5 }: ReferenceConfig, file: Safetensors) {
  const { tensors } = file
  const vector = (name: string): ArrayLike<number> => {
    const tensor = tensors.get(name)
    if (tensor === undefined) throw new Error(`no tensor ${name}`)
    return decode('f32', tensor.data)
  }
  const linear = (name: string, x: Matrix): number[][] => {
    const [weight, bias] = [vector(`${name}.weight`), vector(`${name}.bias`)]
    return x.map((row) =>
      Array.from(bias, (b, j) => row.reduce((total, value, k) => total + value * (weight[j * row.length + k] ?? 0), b)),
    )
  }
  const norm = (name: string, x: Matrix): number[][] => {
    const [gamma, beta] = [vector(`${name}.weight`), vector(`${name}.bias`)]
    return x.map((row) => {
      const mean = row.reduce((total, value) => total + value, 0) / hidden
      const variance = row.reduce((total, value) => total + (value - mean) ** 2, 0) / hidden
      return row.map((value, j) => ((value - mean) / Math.sqrt(variance + eps)) * (gamma[j] ?? 0) + (beta[j] ?? 0))
    })
  }

  const position = (table: ArrayLike<number> | undefined, s: number, j: number): number => {
    if (table !== undefined) return table[s * hidden + j] ?? 0
    const half = hidden / 2
    const angle = s / 10_000 ** ((2 * (j % half)) / hidden)
    return Math.fround(j < half ? Math.sin(angle) : Math.cos(angle))
  }
  const embed = (side: 'encoder' | 'decoder', ids: readonly number[]): Matrix => {
    const stored = tensors.get(`model.${side}.embed_positions.weight`)
    const table = stored && decode('f32', stored.data)
    const words = wordsOf(file, side)
    return ids.map((id, s) =>
      Array.from({ length: hidden }, (_, j) => (words[id * hidden + j] ?? 0) * embedScale + position(table, s, j)),
    )
  }
  return { vector, linear, norm, embed }
}

/** Rows of one matrix and another, added. */
export const sum = (x: Matrix, y: Matrix): number[][] => x.map((row, i) => row.map((value, j) => value + (y[i]?.[j] ?? 0)))

/** @param mask of pairs: a row per query. The memory has the tokens that some token attends. */
export function encodeSource(
  config: ReferenceConfig,
  file: Safetensors,
  ids: readonly number[],
  mask: Matrix = ids.map(() => ids.map(() => 1)),
): EncodedSource {
  const { preNorm } = config
  const { linear, norm, embed } = partsOf(config, file)
  let x: Matrix = embed('encoder', ids)
  for (let i = 0; i < config.layers; i++) {
    const at = `model.encoder.layers.${i}`
    const attend = (y: Matrix): Matrix => {
      const [q, k, v] = ['q', 'k', 'v'].map((part) => linear(`${at}.self_attn.${part}_proj`, y))
      return linear(`${at}.self_attn.out_proj`, attention(q ?? [], k ?? [], v ?? [], config.heads, mask))
    }
    const inner = (y: Matrix): Matrix =>
      linear(
        `${at}.fc2`,
        linear(`${at}.fc1`, y).map((row) => row.map(config.activation)),
      )
    const [first, second] = [`${at}.self_attn_layer_norm`, `${at}.final_layer_norm`]
    x = preNorm ? sum(x, attend(norm(first, x))) : norm(first, sum(x, attend(x)))
    x = preNorm ? sum(x, inner(norm(second, x))) : norm(second, sum(x, inner(x)))
  }
  const attended = x.filter((_, t) => mask.some((row) => row[t] === 1))
  const memory = preNorm ? norm('model.encoder.layer_norm', attended) : attended
  const cross = (part: string): Matrix[] =>
    Array.from({ length: config.decoderLayers }, (_, i) => linear(`model.decoder.layers.${i}.encoder_attn.${part}_proj`, memory))
  return { memory, keys: cross('k'), values: cross('v') }
}

/** The mask of a decoder: each token attends to those up to itself. */
export const causal = (x: Matrix): number[][] => x.map((_, s) => x.map((_, t) => (t <= s ? 1 : 0)))

/**
 * Softmax attention of each token to all tokens, or to those of its row of a mask; to all if that has none. Heads are adjacent in a token's row.
 */
export function attention(q: Matrix, k: Matrix, v: Matrix, heads: number, mask?: Matrix): number[][] {
  return q.map((query, s) => {
    const size = query.length / heads
    const row = mask?.[s]?.includes(1) ? mask[s] : undefined
    const [keys, values] = [k, v].map((rows) => (row === undefined ? rows : rows.filter((_, t) => row[t] === 1))) as [
      Matrix,
      Matrix,
    ]
    return Array.from({ length: heads }, (_, head) => {
      const scores = keys.map((key) => {
        let total = 0
        for (let j = head * size; j < (head + 1) * size; j++) total += (query[j] ?? 0) * (key[j] ?? 0)
        return total / Math.sqrt(size)
      })
      const top = Math.max(...scores)
      const weights = scores.map((score) => Math.exp(score - top))
      const total = weights.reduce((sum, weight) => sum + weight, 0)
      return Array.from({ length: size }, (_, j) =>
        weights.reduce((sum, weight, t) => sum + (weight / total) * (values[t]?.[head * size + j] ?? 0), 0),
      )
    }).flat()
  })
}
