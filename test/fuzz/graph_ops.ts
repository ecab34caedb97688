/** The ops of random graphs. */
import { call, type Expr, element, load, named, num, reduce, type Stmt, scalarOf } from './describe.js'
import { empty, type OpDraft } from './draft.js'
import type { ValueDesc } from './graph_describe.js'
import type { GraphDraft } from './graph_draft.js'

export const all = (value: ValueDesc): number[] => value.dims.map((_, axis) => axis)
export const read = (draft: OpDraft, name: string | undefined, at: (dim: string) => Expr): Expr => {
  const input = draft.inputs.find((each) => each.name === name)
  if (input === undefined) throw new Error(`an op without ${name}`)
  return load(scalarOf(input.dtype), input.name, ...input.dims.map(at))
}
export const own = (dim: string): Expr => named(`i_${dim}`)

/** Something of every element, and of others that are given. */
export function each(
  graph: GraphDraft,
  x: ValueDesc,
  others: readonly { readonly value: ValueDesc; readonly axes: readonly number[] }[] = [],
): ValueDesc {
  const { random } = graph
  return graph.op([{ value: x, axes: all(x) }, ...others], 'T', ({ draft, dims, names }) => {
    const at = { ...empty, indices: dims.map((dim) => ({ name: `i_${dim}`, dim })), plain: true }
    const parts = names.map((name) => read(draft, name, own))
    const joined = parts.reduce((sum, part) => call('f32', random.pick(['add', 'add', 'mul', 'sub']), sum, part))
    const value =
      others.length > 0 && random.chance(0.6)
        ? joined
        : call('f32', random.pick(['add', 'mul', 'maximum']), joined, draft.float(2, at))
    return { result: { kind: 'number', value: random.chance(0.3) ? call('f32', random.pick(['gelu', 'tanh']), value) : value } }
  })
}

export const bias = (graph: GraphDraft, x: ValueDesc): ValueDesc => {
  const last = x.dims.length - 1
  return each(graph, x, [{ value: graph.weight([x.dims[last] ?? '']), axes: [last] }])
}
export const residual = (graph: GraphDraft, x: ValueDesc, other: ValueDesc): ValueDesc =>
  each(graph, x, [{ value: other, axes: all(x) }])

/** A norm of rows: by their mean square or their variance, with a gain. */
export function norm(graph: GraphDraft, x: ValueDesc): ValueDesc {
  const { random } = graph
  const last = x.dims.length - 1
  const gain = graph.weight([x.dims[last] ?? ''])
  return graph.op(
    [
      { value: x, axes: all(x) },
      { value: gain, axes: [last] },
    ],
    'T',
    ({ draft, dims, names }) => {
      const n = dims[last] ?? ''
      const at = (dim: string): Expr => (dim === n ? named('c') : own(dim))
      const [v, g] = [read(draft, names[0], at), read(draft, names[1], at)]
      const body: Stmt[] = []
      let centred: Expr = v
      if (random.chance(0.5)) {
        body.push({ kind: 'const', name: 'mean', value: call('f32', 'div', reduce('sum', n, 'c', v), named(n)) })
        centred = call('f32', 'sub', v, named('mean', 'f32'))
      }
      body.push({
        kind: 'const',
        name: 'spread',
        value: call('f32', 'div', reduce('sum', n, 'c', call('f32', 'square', centred)), named(n)),
      })
      const scaled = call('f32', 'mul', centred, call('f32', 'rsqrt', call('f32', 'add', named('spread', 'f32'), num(0.125))))
      return { body, isRow: true, result: { kind: 'row', loop: { length: n, index: 'c', value: call('f32', 'mul', scaled, g) } } }
    },
  )
}

/** Numbers of rows that follow from parts of them: log-sum-exp with a weighted sum, a sum of squares or an extreme. */
export function reduced(graph: GraphDraft, x: ValueDesc): ValueDesc {
  const { random } = graph
  const last = x.dims.length - 1
  const gain = graph.weight([x.dims[last] ?? ''])
  const reads = [
    { value: x, axes: all(x) },
    { value: gain, axes: [last] },
  ]
  return graph.op(reads, 'f32', ({ draft, dims, names }) => {
    const n = dims[last] ?? ''
    const at = (dim: string): Expr => (dim === n ? named('c') : own(dim))
    const [v, g] = [read(draft, names[0], at), read(draft, names[1], at)]
    const made = { isRow: true, isReduced: true } as const
    const form = random.below(4)
    if (form === 0) return { ...made, result: { kind: 'number', value: reduce('sum', n, 'c', call('f32', 'mul', v, g)) } }
    if (form === 1)
      return { ...made, result: { kind: 'number', value: reduce(random.pick(['max', 'min']), n, 'c', call('f32', 'sub', v, g)) } }
    const e = call('f32', 'exp', call('f32', 'sub', v, named('top', 'f32')))
    const body: Stmt[] = [
      { kind: 'const', name: 'top', value: reduce('max', n, 'c', v) },
      { kind: 'const', name: 'total', value: reduce('sum', n, 'c', form === 2 ? e : call('f32', 'mul', e, g)) },
    ]
    const total = named('total', 'f32')
    const value = form === 2 ? call('f32', 'add', named('top', 'f32'), call('f32', 'log', total)) : total
    return { ...made, body, result: { kind: 'number', value } }
  })
}

/** The softmax of rows. */
export function softmax(graph: GraphDraft, x: ValueDesc): ValueDesc {
  const last = x.dims.length - 1
  return graph.op([{ value: x, axes: all(x) }], 'T', ({ draft, dims, names }) => {
    const n = dims[last] ?? ''
    const v = read(draft, names[0], (dim) => (dim === n ? named('c') : own(dim)))
    const e = call('f32', 'exp', call('f32', 'sub', v, named('top', 'f32')))
    const body: Stmt[] = [
      { kind: 'const', name: 'top', value: reduce('max', n, 'c', v) },
      { kind: 'row', name: 'e', loop: { length: n, index: 'c', value: e } },
      { kind: 'const', name: 'total', value: reduce('sum', n, 'c', element('f32', 'e', named('c'))) },
    ]
    return {
      body,
      isRow: true,
      result: {
        kind: 'row',
        loop: { length: n, index: 'c', value: call('f32', 'div', element('f32', 'e', named('c')), named('total', 'f32')) },
      },
    }
  })
}
