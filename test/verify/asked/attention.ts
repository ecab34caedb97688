/** Variants of attention as one kernel each, against a single reference of scores, weights and averages in doubles. */
import type { AnyTensor } from '../../../src/runtime/api/index.js'
import { graphs } from '../../projects/attention/specs/index.js'
import { at, claim, drawn, f32, i32, indices, largestOf, type Reference, sumOf } from './claims.js'

/** More than a tile of keys, with a tail. */
const [b, h, s, d, e] = [2, 4, 37, 12, 20]

interface Case {
  /** Heads of keys and values. */
  readonly g?: number
  readonly given?: Readonly<Record<string, AnyTensor>>
  readonly window?: number
  /** The score of a query and a key from their dot product over the root that the graph states; minus infinity for none. */
  readonly score: (x: number, at: { readonly b: number; readonly h: number; readonly s: number; readonly t: number }) => number
  /** A score that has a weight and no value. */
  readonly sink?: (head: number) => number
  readonly turn?: (x: readonly number[], heads: number) => number[]
  /** The change in the twin. */
  readonly wrong: Partial<Pick<Case, 'score' | 'sink' | 'turn'>>
}

/** Vaswani et al., Attention Is All You Need (2017), equation 1, over 8; heads share keys as Ainslie et al., GQA (2023). */
function attend(q: readonly number[], k: readonly number[], v: readonly number[], { g = h, score, sink, turn }: Case): number[] {
  const [query, key] = turn === undefined ? [q, k] : [turn(q, h), turn(k, g)]
  return indices(b * s * h).flatMap((row) => {
    const [batch, place, head] = [Math.floor(row / (s * h)), Math.floor(row / h) % s, row % h]
    const keyAt = (t: number): number => (batch * s + t) * g + Math.floor(head / (h / g))
    const scores = indices(s).map((t) => {
      const product = sumOf(indices(d).map((c) => at(query, row * d + c) * at(key, keyAt(t) * d + c)))
      return score(product / 8, { b: batch, h: head, s: place, t })
    })
    const own = sink?.(head) ?? Number.NEGATIVE_INFINITY
    const top = Math.max(largestOf(scores), own)
    const powers = scores.map((each) => Math.exp(each - top))
    const total = sumOf(powers) + Math.exp(own - top)
    return indices(e).map((c) => sumOf(powers.map((power, t) => (power / total) * at(v, keyAt(t) * e + c))))
  })
}

const fused =
  (name: string, of: Case): Reference =>
  async (device) => {
    const { g = h, given = {}, window = 0 } = of
    const [q, k, v] = [drawn(b * s * h * d, 1), drawn(b * s * g * d, 2), drawn(b * s * g * e, 3)]
    const decl = graphs[`attend_${name}`]
    if (decl === undefined) throw new Error(`there is no graph attend_${name}`)
    const model = await device.load(decl, { plan: `one_kernel_attend_${name}`, weights: {}, dtype: 'f32', attrs: { window } })
    try {
      const inputs = { query: f32([b, s, h, d], q), key: f32([b, s, g, d], k), value: f32([b, s, g, e], v), ...given }
      const { result } = (await model.run(inputs as never)) as { readonly result: AnyTensor }
      const bound = { class: 'attention', length: d, scale: 4 } as const
      return [claim(name, result, attend(q, k, v, of), attend(q, k, v, { ...of, ...of.wrong }), bound)]
    } finally {
      model.close()
    }
  }

const hidden = Number.NEGATIVE_INFINITY
const slopes = indices(h).map((head) => 2 ** (-2 * (head + 1)))
const pairs = drawn(h * s * s, 5)
const documents = indices(b * s).map((i) => Math.floor((i % s) / 11))
const sinks = drawn(h, 6)
const positions = indices(b * s).map((i) => (i * 3) % 41)

/** Su et al., RoFormer (2021), in halves as GPT-NeoX: bases of e^6. */
const rotate = (x: readonly number[], heads: number, sign = 1): number[] =>
  x.map((each, i) => {
    const [c, token] = [i % d, Math.floor(i / (d * heads))]
    const angle = at(positions, token) * Math.exp((-6 * (c % (d / 2))) / (d / 2))
    const partner = c < d / 2 ? -at(x, i + d / 2) : at(x, i - d / 2)
    return each * Math.cos(angle) + sign * partner * Math.sin(angle)
  })

export const attention = {
  causal: fused('causal', {
    score: (x, { s: query, t }) => (t <= query ? x : hidden),
    wrong: { score: (x, { s: query, t }) => (t < query || t === 0 ? x : hidden) },
  }),
  /** Beltagy et al., Longformer (2020), to one side. */
  window: fused('window', {
    window: 5,
    score: (x, { s: query, t }) => (t <= query && query - t < 5 ? x : hidden),
    wrong: { score: (x, { s: query, t }) => (t <= query && query - t < 6 ? x : hidden) },
  }),
  /** Press et al., Train Short, Test Long (2022). */
  alibi: fused('alibi', {
    given: { slopes: f32([h], slopes) },
    score: (x, { h: head, s: query, t }) => x + at(slopes, head) * (t - query),
    wrong: { score: (x, { h: head, s: query, t }) => x - at(slopes, head) * Math.abs(t - query) },
  }),
  /** Gemma 2 (2024), section 2, with a cap of 20. */
  softCap: fused('soft_cap', { score: (x) => 20 * Math.tanh(x / 20), wrong: { score: (x) => 10 * Math.tanh(x / 10) } }),
  pairBias: fused('pair_bias', {
    given: { k: f32([h, s, s], pairs) },
    score: (x, { h: head, s: query, t }) => x + at(pairs, (head * s + query) * s + t),
    wrong: { score: (x, { h: head, s: query, t }) => x + at(pairs, (head * s + t) * s + query) },
  }),
  documents: fused('document', {
    given: { ids: i32([b, s], documents) },
    score: (x, { s: query, t }) => (t <= query && at(documents, query) === at(documents, t) ? x : hidden),
    wrong: { score: (x, { s: query, t }) => (t <= query ? x : hidden) },
  }),
  /** Xiao et al., Efficient Streaming Language Models with Attention Sinks (2024), as a score without a value. */
  sink: fused('sink', {
    given: { sink: f32([h], sinks) },
    score: (x, { s: query, t }) => (t <= query ? x : hidden),
    sink: (head) => at(sinks, head),
    wrong: { sink: () => Number.NEGATIVE_INFINITY },
  }),
  /** Miller, Attention Is Off By One (2023): a key with score and value 0. */
  offByOne: fused('off_by_one', { score: (x) => x, sink: () => 0, wrong: { sink: () => Number.NEGATIVE_INFINITY } }),
  /** Powers of two whose distance from the largest is divided by 3; every fifth key has no weight. */
  hot: fused('hot', {
    score: (x, { t }) => (t % 5 === 1 ? hidden : (x * Math.LN2) / 3),
    wrong: { score: (x, { t }) => (t % 5 === 1 ? hidden : x / 3) },
  }),
  grouped: fused('grouped', {
    g: 2,
    score: (x, { s: query, t }) => (t <= query ? x : hidden),
    wrong: { score: (x) => x },
  }),
  rotated: fused('rotated', {
    given: { ids: i32([b, s], positions) },
    score: (x, { s: query, t }) => (t <= query ? x : hidden),
    turn: (x, heads) => rotate(x, heads),
    wrong: { turn: (x, heads) => (heads === h ? rotate(x, heads, -1) : [...x]) },
  }),
}

/** Names of the graphs whose plans are applied. */
export const attentionGraphs: readonly string[] = [
  ...['causal', 'window', 'alibi', 'soft_cap', 'pair_bias', 'document', 'sink', 'off_by_one', 'hot', 'grouped', 'rotated'],
].map((name) => `attend_${name}`)
