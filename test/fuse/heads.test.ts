/**
 * Attention whose ops see the heads of a matmul in another way than the matmul: as one axis, in another order, or with an axis of one element. Axes
 * are paired by their extents and never by their number.
 */
import { describe, expect, it } from 'vitest'
import { call, dim, f32, i32, index } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { ValueId } from '../../src/ir/graph.js'
import { printExpr } from '../../src/ir/print.js'
import { isTemplate } from '../../src/ir/template.js'
import { at } from './attention_draft.js'
import { Draft } from './random/draft.js'
import { judge } from './random/judge.js'

const names = ['p', 'q', 'r', 't', 'u', 'w']

/** The dimensions of an op over a shape, and what it reads. */
function over(shape: string, x: ValueId) {
  const extents = shape.split(' ')
  const axes = names.slice(0, extents.length)
  const ofGraph = Object.fromEntries(axes.map((axis, i) => [axis, extents[i] ?? axis]))
  return { axes, extents: ofGraph, reads: { x: { value: x, dims: axes } }, last: axes.at(-1) ?? '' }
}

const ops = {
  copied: (draft: Draft, x: ValueId, shape: string) => {
    const { axes, extents, reads } = over(shape, x)
    return draft.each(axes, extents, reads, ({ x: given }, places) => at(given, ...axes.map((axis) => places[axis])))
  },
  /** An element without the one at the same distance from the end of its row. */
  turned: (draft: Draft, x: ValueId, shape: string) => {
    const { axes, extents, reads, last } = over(shape, x)
    return draft.each(axes, extents, reads, ({ x: given }, places) => {
      const own = axes.map((axis) => places[axis] ?? i32(0))
      const other = call('sub', call('sub', dim(last), i32(1)), own.at(-1) ?? i32(0))
      return call('sub', at(given, ...own), at(given, ...own.slice(0, -1), other))
    })
  },
  /** The second and the third axis in the other order. */
  swapped: (draft: Draft, x: ValueId, shape: string) => {
    const { axes, extents, reads } = over(shape, x)
    const [first = '', second = '', third = '', ...others] = axes
    return draft.each([first, third, second, ...others], extents, reads, ({ x: given }, places) =>
      at(given, ...axes.map((axis) => places[axis])),
    )
  },
}

function softmax(draft: Draft, x: ValueId, shape: string): ValueId {
  const { axes, extents, reads, last } = over(shape, x)
  return draft.op({
    over: axes,
    extents,
    reads,
    body: ({ x: given }, places) => {
      const rows = axes.slice(0, -1).map((axis) => places[axis] ?? i32(0))
      const exponential = (column: string): Expr => call('exp', at(given, ...rows, index(column)))
      const value = call('div', exponential('c2'), { kind: 'local', type: 'f32', name: 'sum' })
      return [
        { kind: 'reduce', name: 'sum', type: 'f32', monoid: 'sum', length: dim(last), index: 'c', value: exponential('c') },
        { kind: 'storeRow', tensor: 'y', rows, length: dim(last), index: 'c2', value },
      ]
    },
  })
}

interface Shapes {
  /** Shapes of the inputs before a copy, by which an op sees them through a view. */
  readonly before?: string
  readonly query?: string
  readonly key?: string
  readonly scores?: string
  /** Shape of the result for an op after the attention. */
  readonly result?: string
  /** Divides each row of a query by a sum of its elements. */
  readonly normed?: boolean
}

const [asQuery, asKey, asScores] = ['b s k j d', 'b t k d', 'b k j s t']
/** Three heads of keys, each of which two queries share. */
const dims = { b: 2, s: 4, t: 5, k: 3, j: 2, d: 4 }

/** Attention of grouped heads. Queries and keys are computed under the given shapes. */
function grouped({ before, query = asQuery, key = asKey, scores = asScores, result, normed = false }: Shapes): Draft {
  const draft = new Draft()
  const given = before === undefined ? draft.input(query) : draft.view(ops.copied(draft, draft.input(before), before), query)
  const [q, k] = [
    normed ? softmax(draft, given, query) : ops.turned(draft, given, query),
    ops.turned(draft, draft.input(key), key),
  ]
  const raw = draft.matmul('b s k j d, b t k d -> b k j s t', draft.view(q, asQuery), draft.view(k, asKey))
  const weights = draft.view(softmax(draft, draft.view(raw, scores), scores), asScores)
  const made = draft.matmul('b k j s t, b t k d -> b s k j d', weights, draft.input(asKey))
  draft.output(result === undefined ? made : ops.swapped(draft, draft.view(made, result), result))
  return draft
}

const verdictOf = (draft: Draft) => judge({ family: 'heads', seed: 1, draft, groups: [draft.members()], dims })

/** The query's element in the one kernel of all nodes. */
function queryOf(shapes: Shapes): string {
  const verdict = verdictOf(grouped(shapes))
  if (verdict.kind !== 'accepted') throw new Error(JSON.stringify(verdict))
  const [kernel] = verdict.planned.templates.values()
  if (kernel === undefined || !isTemplate(kernel) || kernel.kind === 'matmul') throw new Error('no attention')
  const element = kernel.kind === 'attention' ? kernel.query.element : kernel.query
  return printExpr(element ?? f32(0))
}

describe('grouped heads', () => {
  it('that an op sees as one axis are the heads of the kernel', () => {
    expect(queryOf({ query: 'b s k*j d' })).toContain('in0[b, i, h, c]')
  })

  it('that an op sees in another order are divided by its extents', () => {
    expect(queryOf({ query: 'b s j k d' })).toContain('[b, i, h idiv k_extent, h % k_extent, c]')
  })

  it('of a part of a stack, whose vectors are in another order, are divided too', () => {
    expect(queryOf({ before: 'b*s j k*d', query: 'b s k*j d' })).toContain('h idiv k_extent, h % k_extent, c]')
  })

  it.each<Shapes>([
    { query: 'b s k*j 1 d' },
    // Sequences and positions as one axis, and elements of another head: the last view splits what no op has.
    { query: 'b*s k*j d' },
    { query: 'b s k*j*d' },
    { key: 'b*t 1 k*d' },
    { key: 'b t 1 k d' },
    { scores: 'b k*j s t' },
    { scores: 'b j k s t' },
    { scores: 'b k j 1 s t' },
    { result: 'b s k*j d' },
    { result: 'b s j k d' },
    // No tensor has the axis of queries that share a head.
    { query: 'b s k*j d', scores: 'b k*j s t', result: 'b s k*j d' },
  ])('are right under the shapes %j', (shapes) => expect(verdictOf(grouped(shapes))).toMatchObject({ kind: 'accepted' }))

  it('are refused where an op reduces a row of all heads', () => {
    const reason = expect.stringContaining('expected elements along the axes of the matmul, "b s k j d", got "b s d*j*k"')
    expect(verdictOf(grouped({ query: 'b s k*j*d', normed: true }))).toEqual({ kind: 'refused', reason })
  })

  it('are read at their address where an op only moves a part of a stack', () => {
    const draft = new Draft()
    const part = ops.copied(draft, draft.input('b*t 1 k*d'), 'b*t 1 k*d')
    const raw = draft.matmul('b s k j d, b t k d -> b k j s t', draft.input(asQuery), draft.input(asKey))
    const weights = softmax(draft, raw, asScores)
    draft.output(draft.matmul('b k j s t, b t k d -> b s k j d', weights, draft.view(part, asKey)))
    const verdict = verdictOf(draft)
    if (verdict.kind !== 'accepted') throw new Error(JSON.stringify(verdict))
    const [kernel] = verdict.planned.templates.values()
    expect(kernel?.kind === 'attention' && [kernel.value.element, kernel.value.indices.map(printExpr)]).toEqual([
      undefined,
      ['b', 'j', '0', 'h idiv j_extent', '0'],
    ])
  })

  it('are refused where positions and heads of keys are in the other order', () => {
    const reason = expect.stringContaining('expected elements along the axes of the matmul, "b t k d", got "b k t d"')
    expect(verdictOf(grouped({ key: 'b k t d' }))).toEqual({ kind: 'refused', reason })
  })
})
