/**
 * Random attention: scores, their changes and masks, weights of keys, and the average of values; of sequences, and of one query against its caches.
 */
import { call, type Expr, load, num, whole } from './describe.js'
import type { ValueDesc } from './graph_describe.js'
import type { GraphDraft } from './graph_draft.js'
import { all, each, own, read, softmax } from './graph_ops.js'

/** A score that is visible under a condition, and hidden elsewhere. */
const hidden = (graph: GraphDraft, seen: Expr, value: Expr): Expr =>
  call('f32', 'select', seen, value, num(graph.random.pick([-1e30, -1e30, Number.NEGATIVE_INFINITY])))

/** Masks of scores. The first key is always seen, so that no row is masked as a whole. */
function masked(graph: GraphDraft, x: ValueDesc, keys: string, lengths?: ValueDesc): ValueDesc {
  const { random } = graph
  const [batch = '', heads = ''] = x.dims
  const form = lengths === undefined ? random.pick(['causal', 'window', 'flags', 'bias', 'lengths'] as const) : 'lengths'
  const first = (t: Expr): Expr => call('bool', 'eq', t, whole(0))
  switch (form) {
    case 'flags': {
      const keep = graph.input([batch, keys], 'bool', { kind: 'flag' })
      return graph.op(
        [
          { value: x, axes: all(x) },
          { value: keep, axes: [0, 3] },
        ],
        'T',
        ({ draft, dims, names }) => {
          const kept = load('bool', names[1] ?? '', own(dims[0] ?? ''), own(dims[3] ?? ''))
          const value = hidden(graph, call('bool', 'or', kept, first(own(dims[3] ?? ''))), read(draft, names[0], own))
          return { result: { kind: 'number', value } }
        },
      )
    }
    case 'bias': {
      const bias = graph.input([heads, x.dims[2] ?? '', keys], random.pick(['T', 'f32']))
      return each(graph, x, [{ value: bias, axes: [1, 2, 3] }])
    }
    case 'lengths': {
      const until = lengths ?? graph.input([batch], 'i32', { kind: 'length', of: keys, least: 1 })
      return graph.op(
        [
          { value: x, axes: all(x) },
          { value: until, axes: [0] },
        ],
        'T',
        ({ draft, dims, names }) => {
          const inside = call('bool', 'lt', own(dims[3] ?? ''), load('i32', names[1] ?? '', own(dims[0] ?? '')))
          return { result: { kind: 'number', value: hidden(graph, inside, read(draft, names[0], own)) } }
        },
      )
    }
    default: {
      const window = random.pick([3, 100])
      return graph.op([{ value: x, axes: all(x) }], 'T', ({ draft, dims, names }) => {
        const [s, t] = [own(dims[2] ?? ''), own(dims[3] ?? '')]
        const seen = call('bool', 'le', t, s)
        const near = call('bool', 'or', call('bool', 'lt', call('i32', 'sub', s, t), whole(window)), first(t))
        const condition = form === 'causal' ? seen : call('bool', 'and', seen, near)
        return { result: { kind: 'number', value: hidden(graph, condition, read(draft, names[0], own)) } }
      })
    }
  }
}

const scaled = (graph: GraphDraft, x: ValueDesc): ValueDesc =>
  graph.op([{ value: x, axes: all(x) }], 'T', ({ draft, names }) => ({
    result: { kind: 'number', value: call('f32', 'mul', read(draft, names[0], own), num(graph.random.pick([0.25, 0.5, 0.75]))) },
  }))

/** Weights of scores over [b h s keys]. */
export function weighted(graph: GraphDraft, scores: ValueDesc, keys: string, lengths?: ValueDesc): ValueDesc {
  const { random } = graph
  let x = scaled(graph, scores)
  if (random.chance(0.3)) x = each(graph, x, [{ value: graph.input(['h'], 'f32'), axes: [1] }])
  if (random.chance(0.3))
    x = graph.op([{ value: x, axes: all(x) }], 'T', ({ draft, names }) => ({
      result: { kind: 'number', value: call('f32', 'mul', call('f32', 'tanh', read(draft, names[0], own)), num(4)) },
    }))
  if (lengths !== undefined || random.chance(0.7)) x = masked(graph, x, keys, lengths)
  return softmax(graph, x)
}

/** Nodes from one to another, those in between and no views. */
export const between = ({ nodes }: GraphDraft, from: string, to: string): string[] =>
  nodes
    .slice(
      nodes.findIndex(({ name }) => name === from),
      nodes.findIndex(({ name }) => name === to) + 1,
    )
    .flatMap((node) => (node.kind === 'view' ? [] : [node.name]))

/** Attention of sequences. */
export function attention(graph: GraphDraft): string[] {
  const { random } = graph
  const isViewed = random.chance(0.5)
  const keys = random.chance(0.5) ? 's' : 't'
  const axes = (rows: string): string[] => (isViewed ? ['b', rows, 'h', 'd'] : ['b', 'h', rows, 'd'])
  const operand = (rows: string): ValueDesc =>
    isViewed && random.chance(0.7) ? graph.view(graph.input(['b', rows, 'h*d']), axes(rows)) : graph.input(axes(rows))
  const [q, k, v] = [operand('s'), operand(keys), operand(keys)]
  const letters = (rows: string): string => axes(rows).join(' ')
  const scores = graph.matmul(`${letters('s')}, ${letters('t')} -> b h s t`, q, k, ['b', 'h', 's', keys])
  const weights = weighted(graph, scores, keys)
  let y = graph.matmul(`b h s t, ${letters('t')} -> ${letters('s')}`, weights, v, axes('s'))
  graph.core = between(graph, scores.name, y.name)
  if (isViewed && random.chance(0.7)) {
    y = graph.view(y, ['b', 's', 'h*d'])
    if (random.chance(0.4)) y = graph.matmul('b s c, n c -> b s n', y, graph.weight(['n', 'h*d']), ['b', 's', 'n'])
  }
  if (random.chance(0.3)) y = each(graph, y)
  return [y.name]
}

/** One query against its caches, which a key and a value join in place. */
export function decode(graph: GraphDraft): string[] {
  const { random } = graph
  const cached = random.chance(0.6) ? ['b', 'h', 't', 'd'] : ['b', 't', 'h', 'd']
  const place = cached.indexOf('t')
  const rows = ['b', 'h', 'd']
  const places = graph.input(['b'], 'i32', { kind: 'index', of: 't' })
  const join = (x: ValueDesc): ValueDesc => {
    const cache = graph.input(cached)
    const axes = [0, 1, 2, 3].filter((axis) => axis !== place)
    return graph.op(
      [
        { value: cache, axes: [0, 1, 2, 3] },
        { value: x, axes },
        { value: places, axes: [0] },
      ],
      'T',
      ({ draft, dims, names }) => {
        const isPlace = call('bool', 'eq', own(dims[place] ?? ''), load('i32', names[2] ?? '', own(dims[0] ?? '')))
        const value = call('f32', 'select', isPlace, read(draft, names[1], own), read(draft, names[0], own))
        return { result: { kind: 'number', value }, ...(names[0] === undefined ? {} : { updates: names[0] }) }
      },
    )
  }
  const [query, key, value] = [0, 1, 2].map(() => graph.input(rows))
  if (query === undefined || key === undefined || value === undefined) throw new Error('no query')
  const asked = random.chance(0.3) ? each(graph, query) : query
  const [keys, values] = [join(key), join(value)]
  const letters = cached.join(' ')
  const scores = graph.matmul(`b h d, ${letters} -> b h t`, asked, keys, ['b', 'h', 't'])
  const seen = graph.op(
    [
      { value: scaled(graph, scores), axes: [0, 1, 2] },
      { value: places, axes: [0] },
    ],
    'T',
    ({ draft, dims, names }) => {
      const isPast = call('bool', 'le', own(dims[2] ?? ''), load('i32', names[1] ?? '', own(dims[0] ?? '')))
      return { result: { kind: 'number', value: hidden(graph, isPast, read(draft, names[0], own)) } }
    },
  )
  let y = graph.matmul(`b h t, ${letters} -> b h d`, softmax(graph, seen), values, rows)
  graph.core = between(graph, keys.name, y.name)
  if (random.chance(0.3)) y = each(graph, y)
  return [y.name, keys.name, values.name]
}
