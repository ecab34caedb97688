/** Attention as users of other tools ask for it: graphs with bodies, each with a plan that makes one kernel of it. */
import { type GraphBuilder, type GraphTensor, graph, plan, tensor } from 'heddle'
import * as ops from './ops.js'

type Values = Readonly<Record<string, GraphTensor>>
type Made = { readonly x: GraphTensor; readonly nodes: Values }

/** Other tensors that a variant reads; each variant uses some of them. Names that indices of kernels have are as good as others. */
const extra = {
  slopes: tensor('f32', 'h'),
  bias: tensor('T', 'h r'),
  k: tensor('T', 'h s s'),
  c: tensor('T', 'b s s'),
  kept: tensor('bool', 'b s s'),
  lengths: tensor('i32', 'b'),
  ids: tensor('i32', 'b s'),
  sink: tensor('f32', 'h'),
  gamma: tensor('T', 'd'),
  w: tensor('T', 'b s h e'),
} as const

interface Variant {
  /** Heads of keys and values: `h`, or `g` where several heads share them. */
  readonly keyHeads?: 'h' | 'g'
  readonly before?: (g: GraphBuilder, x: GraphTensor, given: Values, which: string) => Made
  readonly between: (g: GraphBuilder, x: GraphTensor, given: Values) => Made
  readonly behind?: (g: GraphBuilder, x: GraphTensor, given: Values) => Made
  readonly reads: readonly (keyof typeof extra)[]
}

/** A chain of ops. */
const chain =
  (...steps: ((g: GraphBuilder, x: GraphTensor, given: Values) => Made)[]): Variant['between'] =>
  (g, x, given) =>
    steps.reduce<Made>(
      (made, step) => {
        const next = step(g, made.x, given)
        return { x: next.x, nodes: { ...made.nodes, ...next.nodes } }
      },
      { x, nodes: {} },
    )

const value = (given: Values, name: string): GraphTensor => {
  const found = given[name]
  if (found === undefined) throw new Error(`no input ${name}`)
  return found
}

const scaled: Variant['between'] = (g, x) => {
  const y = g.apply(ops.scaled, { x }).y
  return { x: y, nodes: { scaled: y } }
}
const rows = (g: GraphBuilder, x: GraphTensor): GraphTensor => g.view(x, 'b*h*s s')
const back = (g: GraphBuilder, x: GraphTensor): GraphTensor => g.view(x, 'b h s s')
const weigh: Variant['between'] = (g, x) => {
  const weights = g.apply(ops.weigh, { logits: rows(g, x) }).weights
  return { x: back(g, weights), nodes: { weights } }
}
const sinking: Variant['between'] = (g, logits, given) => {
  const weights = g.apply(ops.weighWithSink, { logits, sink: value(given, 'sink') }).weights
  return { x: weights, nodes: { weights } }
}
const step =
  (name: string, apply: (g: GraphBuilder, x: GraphTensor, given: Values) => GraphTensor): Variant['between'] =>
  (g, x, given) => {
    const y = apply(g, x, given)
    return { x: y, nodes: { [name]: y } }
  }

const causal = step('causal', (g, x) => g.apply(ops.causal, { x }).y)
const windowed = step('windowed', (g, x) => g.apply(ops.slidingWindow, { x }, { size: { attr: 'window' } }).y)
const capped = step('capped', (g, x) => g.apply(ops.softCap, { x }).y)
const sloped = step('sloped', (g, x, given) => g.apply(ops.alibi, { x, slopes: value(given, 'slopes') }).y)
const ragged = step('ragged', (g, x, given) => g.apply(ops.ragged, { x, lengths: value(given, 'lengths') }).y)

const rotated: Variant['before'] = (g, x, given, which) => {
  if (which === 'value') return { x, nodes: {} }
  const y = g.apply(ops.rotate, { x, positions: value(given, 'ids') }).y
  return { x: y, nodes: { [`${which}Rotated`]: y } }
}
const normed: Variant['before'] = (g, x, given, which) => {
  if (which === 'value') return { x, nodes: {} }
  const y = g.apply(ops.headNorm, { x, gamma: value(given, 'gamma') }).y
  return { x: y, nodes: { [`${which}Normed`]: y } }
}

const layerNormed: Variant['before'] = (g, x, given, which) => {
  if (which === 'value') return { x, nodes: {} }
  const y = g.apply(ops.headLayerNorm, { x, gamma: value(given, 'gamma') }).y
  return { x: y, nodes: { [`${which}Normed`]: y } }
}

const variants: Readonly<Record<string, Variant>> = {
  plain: { between: chain(scaled, weigh), reads: [] },
  causal: { between: chain(scaled, causal, weigh), reads: [] },
  causal_added: {
    between: chain(
      scaled,
      step('hidden', (g, x) => g.apply(ops.hiddenFuture, { x }).y),
      weigh,
    ),
    reads: [],
  },
  window: { between: chain(scaled, windowed, weigh), reads: [] },
  dilated: {
    between: chain(
      scaled,
      step('dilated', (g, x) => g.apply(ops.dilatedWindow, { x }).y),
      weigh,
    ),
    reads: [],
  },
  alibi: { between: chain(scaled, sloped, weigh), reads: ['slopes'] },
  relative_bias: {
    between: chain(
      scaled,
      step('biased', (g, x, given) => g.apply(ops.relativeBias, { x, bias: value(given, 'bias') }).y),
      weigh,
    ),
    reads: ['bias'],
  },
  pair_bias: {
    between: chain(
      scaled,
      step('biased', (g, x, given) => g.apply(ops.pairBias, { x, bias: value(given, 'k') }).y),
      weigh,
    ),
    reads: ['k'],
  },
  soft_cap: { between: chain(scaled, capped, weigh), reads: [] },
  document: {
    between: chain(
      scaled,
      causal,
      step('inside', (g, x, given) => g.apply(ops.documents, { x, own: value(given, 'ids'), other: value(given, 'ids') }).y),
      weigh,
    ),
    reads: ['ids'],
  },
  prefix: {
    between: chain(
      scaled,
      step('prefixed', (g, x, given) => g.apply(ops.prefixMask, { x, prefix: value(given, 'lengths') }).y),
      weigh,
    ),
    reads: ['lengths'],
  },
  neighbourhood: {
    between: chain(
      scaled,
      step('near', (g, x) => g.apply(ops.neighbourhood, { x }).y),
      weigh,
    ),
    reads: [],
  },
  dense_mask: {
    between: chain(
      scaled,
      step('added', (g, x, given) => g.apply(ops.denseMask, { x, mask: value(given, 'c') }).y),
      weigh,
    ),
    reads: ['c'],
  },
  kept_pairs: {
    between: chain(
      scaled,
      step('kept', (g, x, given) => g.apply(ops.keptPairs, { x, kept: value(given, 'kept') }).y),
      weigh,
    ),
    reads: ['kept'],
  },
  sink: { between: chain(scaled, causal, sinking), reads: ['sink'] },
  off_by_one: {
    between: chain(scaled, (g, x) => {
      const y = g.apply(ops.softmax, { x: rows(g, x) }).y
      return { x: back(g, y), nodes: { weights: y } }
    }),
    reads: [],
  },
  hot: {
    between: chain(scaled, (g, x) => {
      const y = g.apply(ops.weighHot, { x: rows(g, x) }, { temperature: 3 }).y
      return { x: back(g, y), nodes: { weights: y } }
    }),
    reads: [],
  },
  grouped: { keyHeads: 'g', between: chain(scaled, causal, weigh), reads: [] },
  ragged: { between: chain(scaled, causal, ragged, weigh), reads: ['lengths'] },
  rotated: { before: rotated, between: chain(scaled, causal, weigh), reads: ['ids'] },
  normed: { before: normed, between: chain(scaled, weigh), reads: ['gamma'] },
  layer_normed: { before: layerNormed, between: chain(scaled, weigh), reads: ['gamma'] },
  gated: {
    between: chain(scaled, weigh),
    behind: step('gated', (g, x, given) => g.apply(ops.gated, { x, gate: value(given, 'w') }).y),
    reads: ['w'],
  },
  everything: {
    keyHeads: 'g',
    before: rotated,
    between: chain(scaled, capped, sloped, windowed, weigh),
    reads: ['ids', 'slopes'],
  },
}

/** Subscripts with the sequence before the heads, like the results of projections. */
const attend = (name: string, { keyHeads = 'h', before, between, behind, reads }: Variant) =>
  graph(`attend_${name}`, {
    inputs: {
      query: tensor('T', 'b s h d'),
      key: tensor('T', `b s ${keyHeads} d`),
      value: tensor('T', `b s ${keyHeads} e`),
      ...Object.fromEntries(reads.map((read) => [read, extra[read]])),
    },
    weights: {},
    // Run-time numbers: another window is the same kernel.
    attrs: ['window'],
    build: (g, { query, key, value: values, ...given }) => {
      const all: Values = given
      const made = (x: GraphTensor, which: string): Made => before?.(g, x, all, which) ?? { x, nodes: {} }
      const [q, k, v] = [made(query, 'query'), made(key, 'key'), made(values, 'value')]
      const repeat = (x: GraphTensor): GraphTensor => (keyHeads === 'h' ? x : g.apply(ops.repeatHeads, { x }, {}, { h: 'h' }).y)
      const [keys, valuesOfHeads] = [repeat(k.x), repeat(v.x)]
      const repeated: Values = keyHeads === 'h' ? {} : { keys, valuesOfHeads }
      const scores = g.matmul('b s h d, b t h d -> b h s t', q.x, keys)
      const weighed = between(g, scores, all)
      const context = g.matmul('b h s t, b t h e -> b s h e', weighed.x, valuesOfHeads)
      const last = behind?.(g, context, all) ?? { x: context, nodes: {} }
      const nodes: Values = { ...q.nodes, ...k.nodes, ...repeated, scores, ...weighed.nodes, context, ...last.nodes }
      return { nodes, outputs: { result: last.x } }
    },
  })

const declared = Object.entries(variants).map(([name, variant]) => attend(name, variant))

/** Heads before the sequence, memories of another length than the queries, no batch, swapped operands. */
const other = (name: string, subscripts: readonly [string, string], shapes: readonly [string, string, string], swapped = false) =>
  graph(`attend_${name}`, {
    inputs: { query: tensor('T', shapes[0]), key: tensor('T', shapes[1]), value: tensor('T', shapes[2]) },
    weights: {},
    build: (g, { query, key, value: values }) => {
      const scores = swapped ? g.matmul(subscripts[0], key, query) : g.matmul(subscripts[0], query, key)
      const shape = /-> (.*)$/.exec(subscripts[0])?.[1] ?? ''
      const extents = shape.split(' ')
      const weights = g.apply(ops.weigh, {
        logits: g.view(scores, `${extents.slice(0, -1).join('*')} ${extents.at(-1)}`),
      }).weights
      const seen = g.view(weights, shape)
      const context = swapped ? g.matmul(subscripts[1], values, seen) : g.matmul(subscripts[1], seen, values)
      return { nodes: { scores, weights, context }, outputs: { result: context } }
    },
  })

const forms = [
  other('head_first', ['b h s d, b h t d -> b h s t', 'b h s t, b h t e -> b h s e'], ['b h s d', 'b h t d', 'b h t e']),
  other('memory', ['b s h d, b t h d -> b h s t', 'b h s t, b t h d -> b s h d'], ['b s h d', 'b t h d', 'b t h d']),
  other('no_batch', ['s d, t d -> s t', 's t, t e -> s e'], ['s d', 't d', 't e']),
  other('one_head', ['b s d, b t d -> b s t', 'b s t, b t e -> b s e'], ['b s d', 'b t d', 'b t e']),
  other('shared_keys', ['b s h d, b t d -> b h s t', 'b h s t, b t e -> b s h e'], ['b s h d', 'b t d', 'b t e']),
  other(
    'grouped_axes',
    ['b s g r d, b t g d -> b g r s t', 'b g r s t, b t g e -> b s g r e'],
    ['b s g r d', 'b t g d', 'b t g e'],
  ),
  other('swapped', ['b t h d, b s h d -> b h s t', 'b t h e, b h s t -> b s h e'], ['b s h d', 'b t h d', 'b t h e'], true),
  other('step', ['b h d, b t h d -> b h t', 'b h t, b t h d -> b h d'], ['b h d', 'b t h d', 'b t h d']),
]

export const graphs = Object.fromEntries([...declared, ...forms].map((decl) => [decl.name, decl]))

export const plans = [...declared, ...forms].map((decl) =>
  plan(`one_kernel_${decl.name}`, decl, { groups: { [`fused_${decl.name}`]: decl.nodes } }),
)
