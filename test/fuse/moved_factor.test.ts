/** Library matmuls that read an operand from the source of a moving op: their operands, and cases left to a kernel. */
import { describe, expect, it } from 'vitest'
import { applyPlan } from '../../src/fuse/apply.js'
import { checkDerived, type MovedGroup } from '../../src/fuse/check/derived.js'
import { call, dim, f32, i32 } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { NodeOf, ValueId } from '../../src/ir/graph.js'
import { evaluateExtent, printShape } from '../../src/ir/shape.js'
import { lowerMatmul, type StridedOperand } from '../../src/runtime/matmul.js'
import { refusal } from '../refusal.js'
import { at } from './attention_draft.js'
import { Draft } from './random/draft.js'

const shared = (h: Expr): Expr => call('idiv', h, call('idiv', dim('h'), dim('g')))

/** Heads of keys for those of queries. @param head of the keys, for a head of the queries */
function repeated(draft: Draft, head = shared, element: (x: Expr) => Expr = (x) => x): ValueId {
  const reads = { x: { value: draft.input('r g u d'), dims: ['r', 'g', 'u', 'd'] } }
  return draft.each(['r', 'h', 'u', 'd'], { r: 'r', h: 'h', u: 'u', d: 'd', g: 'g' }, reads, ({ x }, { r, h = i32(0), u, d }) =>
    element(at(x, r, head(h), u, d)),
  )
}

const plan = { name: 'p', graph: 'drawn', library: ['k'] }
const applied = (draft: Draft) =>
  applyPlan(draft.graph(), { ...plan, groups: [{ kernel: 'k', occurrences: [draft.members()] }] }, draft.kernels)

/** The matmul that replaces the group, after it was checked against the bodies of its nodes. */
function productOf(draft: Draft) {
  const { graph, moved } = applied(draft)
  for (const group of moved) checkDerived(group, draft.kernels)
  const product = graph.nodes.find((node): node is NodeOf<'matmul'> => node.kind === 'matmul')
  if (product === undefined || moved.length !== 1) throw new Error('no product')
  expect(graph.nodes.filter(({ kind }) => kind === 'op')).toEqual([])
  return { graph, product }
}

/** Extents and first elements of the library's operands. */
function lowered(draft: Draft, dims: Readonly<Record<string, number>>) {
  const { graph, product } = productOf(draft)
  const operand = (id: ValueId, axes: readonly string[]): StridedOperand => {
    const extents = (graph.values[id]?.shape ?? []).map((extent) => evaluateExtent(extent, dims))
    const strides = extents.map((_, at) => extents.slice(at + 1).reduce((whole, extent) => whole * extent, 1))
    return { axes, extents, strides }
  }
  const { a, b, out, subscripts } = product
  return lowerMatmul('k', { a: operand(a, subscripts.a), b: operand(b, subscripts.b), out: operand(out, subscripts.out) })
}

const scores = (draft = new Draft()): Draft => {
  const query = draft.input('r h d')
  draft.output(draft.matmul('r h d, r h u d -> r h u', query, repeated(draft)))
  return draft
}

describe('a matmul of heads that share a head', () => {
  it('multiplies the heads of each as rows, and copies nothing', () => {
    const { graph, product } = productOf(scores())
    expect([product.a, product.b, product.out].map((id) => printShape(graph.values[id]?.shape ?? []))).toEqual([
      'r g (h/g) d',
      'r g u d',
      'r g (h/g) u',
    ])
    const { matmul, offsets } = lowered(scores(), { r: 2, g: 3, h: 12, u: 5, d: 7 })
    expect([matmul.extents, offsets.length]).toEqual([[6, 4, 5, 7], 1])
  })

  it('is a matmul of vectors if none is shared', () => {
    const { matmul, offsets } = lowered(scores(), { r: 2, g: 3, h: 3, u: 5, d: 7 })
    expect([matmul.extents, offsets.length]).toEqual([[6, 1, 5, 7], 1])
  })

  it('is that of any other factor and form', () => {
    const draft = new Draft()
    const weights = draft.input('r h s u')
    draft.output(draft.matmul('r h u d, r h s u -> r h s d', repeated(draft), weights))
    const { matmul, offsets } = lowered(draft, { r: 2, g: 3, h: 12, s: 2, u: 5, d: 7 })
    expect([matmul.extents[0] * offsets.length, offsets.length]).toEqual([6, 1])
  })

  it('is wrong if the outer axis is confused with the inner one', () => {
    const [group] = applied(scores()).moved
    if (group === undefined) throw new Error('no group')
    const nodes = group.instead.nodes.map((node) =>
      node.kind === 'matmul'
        ? { ...node, subscripts: { ...node.subscripts, b: node.subscripts.b.map((axis) => (axis === 'h' ? 'h2' : axis)) } }
        : node,
    )
    const wrong: MovedGroup = { ...group, instead: { ...group.instead, nodes } }
    expect(refusal(() => checkDerived(wrong, scores().kernels)).code).toBe('plan.meaning')
  })
})

it('an operand with permuted axes is read in that order', () => {
  const draft = new Draft()
  const reads = { x: { value: draft.input('k n'), dims: ['k', 'n'] } }
  const turned = draft.each(['n', 'k'], { n: 'n', k: 'k' }, reads, ({ x }, { n, k }) => at(x, k, n))
  draft.output(draft.matmul('m k, n k -> m n', draft.input('m k'), turned))
  expect(productOf(draft).product.subscripts).toEqual({ a: ['m', 'k'], b: ['k', 'n'], out: ['m', 'n'] })
})

describe('a factor is computed', () => {
  const refused = (factor: (draft: Draft) => ValueId): string => {
    const draft = new Draft()
    draft.output(draft.matmul('r h d, r h u d -> r h u', draft.input('r h d'), factor(draft)))
    const { code, message } = refusal(() => applied(draft))
    expect(code).toBe('plan.library')
    return message
  }

  it.each<[string, (draft: Draft) => ValueId]>([
    ['by an op that changes elements', (draft) => repeated(draft, shared, (x) => call('mul', x, f32(2)))],
    ['by one that shares heads far apart', (draft) => repeated(draft, (h) => call('mod', h, dim('g')))],
    ['by one that reads one head alone', (draft) => repeated(draft, () => i32(0))],
  ])('%s', (_, factor) => {
    expect(refused(factor)).toContain('computes a factor, and the library multiplies stored values')
  })

  it('if others need it too', () => {
    const draft = new Draft()
    const keys = repeated(draft)
    draft.output(keys)
    draft.output(draft.matmul('r h d, r h u d -> r h u', draft.input('r h d'), keys))
    expect(refusal(() => applied(draft)).code).toBe('plan.library')
  })
})
