/** Random layers that plans change as a whole: matmuls of one input, whose weights may be stacked, and rows of sequences, which may be packed. */
import { call } from './describe.js'
import { between, weighted } from './draw_attention.js'
import type { ValueDesc } from './graph_describe.js'
import type { GraphDraft } from './graph_draft.js'
import { all, bias, each, norm, own, read, residual } from './graph_ops.js'

/** A matmul of rows and a weight. */
const linear = (graph: GraphDraft, x: ValueDesc, rows: string, wide: string): ValueDesc =>
  graph.matmul('m k, n k -> m n', x, graph.weight([wide, x.dims.at(-1) ?? '']), [rows, wide])

/** Parts of a stack: matmuls of one input, all with a bias or all without. */
function parts(graph: GraphDraft, x: ValueDesc, rows: string, widths: readonly string[]): ValueDesc[] {
  const products = widths.map((wide) => linear(graph, x, rows, wide))
  graph.stacks.push(products.map(({ name }) => name))
  if (graph.random.chance(0.4)) return products
  const [first, ...others] = products
  if (first === undefined) return products
  const by = (product: ValueDesc) => [
    { value: product, axes: all(product) },
    { value: graph.weight([product.dims[1] ?? '']), axes: [1] },
  ]
  const shared = graph.op(by(first), 'T', ({ draft, names }) => ({
    result: { kind: 'number', value: call('f32', 'add', read(draft, names[0], own), read(draft, names[1], own)) },
  }))
  const added = [shared, ...others.map((product) => graph.again(shared, by(product)))]
  graph.stacks.push(added.map(({ name }) => name))
  return added
}

/** Matmuls of one input: a gate and the values that it gates, or separate results. */
export function stack(graph: GraphDraft): string[] {
  const { random } = graph
  const input = graph.input(['m', 'k'])
  const x = random.chance(0.4) ? norm(graph, input) : input
  const isGate = random.chance(0.6)
  const made = parts(
    graph,
    x,
    'm',
    isGate
      ? ['n', 'n']
      : random.pick([
          ['n', 'n', 'n'],
          ['n', 'p'],
          ['n', 'p', 'p'],
        ]),
  )
  const [gate, up] = made
  if (!isGate || gate === undefined || up === undefined) return made.map((each) => each.name)
  const mixed = residual(graph, random.chance(0.6) ? each(graph, gate) : gate, up)
  if (random.chance(0.5)) return [mixed.name]
  const back = linear(graph, mixed, 'm', 'k')
  return [(random.chance(0.6) ? residual(graph, back, input) : back).name]
}

/** Rows of sequences: matmuls, norms, and attention in each sequence. */
export function tokens(graph: GraphDraft): string[] {
  const { random } = graph
  graph.isRagged = true
  const rows = 'b*s'
  const input = graph.input([rows, 'k'])
  const lengths = graph.input(['b'], 'i32', { kind: 'length', of: 's', least: 0 }, 'lengths')
  let x = random.chance(0.4) ? norm(graph, input) : random.chance(0.3) ? each(graph, input) : input
  if (random.chance(0.6)) {
    const heads = parts(graph, x, rows, ['h*d', 'h*d', 'h*d']).map((part) => graph.view(part, ['b', 's', 'h', 'd']))
    const [q, k, v] = heads
    if (q === undefined || k === undefined || v === undefined) throw new Error('no heads')
    const scores = graph.matmul('b s h d, b t h d -> b h s t', q, k, ['b', 'h', 's', 's'])
    const weights = weighted(graph, scores, 's', lengths)
    const context = graph.matmul('b h s t, b t h d -> b s h d', weights, v, ['b', 's', 'h', 'd'])
    graph.core = between(graph, scores.name, context.name)
    x = graph.view(context, [rows, 'h*d'])
    x = linear(graph, x, rows, 'k')
    if (random.chance(0.5)) x = bias(graph, x)
    if (random.chance(0.6)) x = residual(graph, x, input)
  }
  if (random.chance(0.6)) x = bias(graph, linear(graph, x, rows, 'n'))
  if (random.chance(0.4)) x = each(graph, x)
  if (random.chance(0.4)) x = norm(graph, x)
  return [x.name]
}
