/** Refusals of passes over whole graphs, in small graphs that share nothing with the shipped ones: packing, stacks, edges, order. */
import { describe, expect, it } from 'vitest'
import { sortNodes } from '../../src/fuse/graph/edit.js'
import { packGraph } from '../../src/fuse/graph/pack.js'
import { prepareGraph } from '../../src/fuse/passes.js'
import { call } from '../../src/ir/build.js'
import type { Graph, ValueId } from '../../src/ir/graph.js'
import type { PlanDecl } from '../../src/lang/plan.js'
import { graphOf } from '../../src/search/resolve.js'
import { refusal } from '../refusal.js'
import { Draft } from './random/draft.js'

const twice = (draft: Draft, x: ValueId, shape: string): ValueId =>
  draft.each(
    ['m', 'n'],
    { m: shape.split(' ')[0] ?? '', n: shape.split(' ')[1] ?? '' },
    { x: { value: x, dims: ['m', 'n'] } },
    ({ x: at }, { m, n }) =>
      at === undefined || m === undefined || n === undefined ? call('add') : call('add', at(m, n), at(m, n)),
  )

/** The error of a plan for a random graph, with the values in `weights` as weights. */
function refused(draft: Draft, plan: Partial<PlanDecl>, weights: Readonly<Record<string, ValueId>> = {}) {
  const own = new Set(Object.values(weights))
  const drawn = draft.graph()
  const inputs = Object.fromEntries(Object.entries(drawn.inputs).filter(([, id]) => !own.has(id)))
  const { code, message } = refusal(() =>
    prepareGraph({ ...drawn, inputs, weights }, { name: 'p', graph: 'drawn', groups: [], ...plan }, draft.kernels),
  )
  return `${code} ${message}`
}

describe('packed rows', () => {
  const packing = { batch: 'b', seq: 's', tokens: 't', lengths: 'lengths' }

  it('refuse a view that takes them apart otherwise', () => {
    const draft = new Draft()
    const x = draft.input('b*s n')
    draft.output(draft.view(x, 's b n'))
    const error = refusal(() => packGraph(draft.graph(), packing, new Map()))
    expect([error.code, error.message, error.hint]).toEqual([
      'plan.packed',
      'drawn: the view from "b*s n" to "s b n" cannot be expressed over packed rows',
      'split "b*s" into "b s" in a view of its own',
    ])
  })

  it('refuse one that joins them otherwise', () => {
    const draft = new Draft()
    draft.output(draft.view(draft.input('s b n'), 'b*s n'))
    expect(refusal(() => packGraph(draft.graph(), packing, new Map())).message).toContain(
      'the view from "s b n" to "b*s n" cannot',
    )
  })

  it('do not change views that keep them', () => {
    const draft = new Draft()
    draft.output(draft.view(draft.input('b*s h*d'), 'b*s h d'))
    const { nodes, values } = packGraph(draft.graph(), packing, new Map())
    expect(nodes.map(({ kind }) => kind)).toEqual(['view'])
    expect(values.map(({ shape }) => shape[0]?.dims)).toEqual([['t'], ['t']])
  })
})

describe('a stack', () => {
  const stacked = (...nodes: string[]) => ({ stacked: [{ name: 'stack', nodes }] })
  const begins = 'plan.stack stack stack: nodes mm0 and mm1 cannot be stacked: '

  it('refuses operands that are not weights', () => {
    const draft = new Draft()
    const [x, one, other] = [draft.input('m k'), draft.input('n k'), draft.input('n k')]
    for (const b of [one, other]) draft.output(draft.matmul('m k, n k -> m n', x, b))
    expect(refused(draft, stacked('mm0', 'mm1'), { one })).toBe(
      `${begins}one of their operands is neither a weight nor part of a stack`,
    )
    expect(refused(draft, stacked('mm0', 'mm1'))).toContain('nodes mm0 and mm0 cannot be stacked: one of their operands')
  })

  it('accepts weights with other numbers of rows, and refuses matmuls of other forms', () => {
    const draft = new Draft()
    const [x, one, other] = [draft.input('m k'), draft.input('n k'), draft.input('q k')]
    for (const b of [one, other]) draft.output(draft.matmul('m k, n k -> m n', x, b))
    expect(() => refused(draft, stacked('mm0', 'mm1'), { one, other })).toThrow('nothing was refused')

    // Letters name axes within one matmul.
    const renamed = new Draft()
    const [u, three, four] = [renamed.input('m k'), renamed.input('n k'), renamed.input('q k')]
    renamed.output(renamed.matmul('a b, c b -> a c', u, three))
    renamed.output(renamed.matmul('n k, m k -> n m', u, four))
    expect(() => refused(renamed, stacked('mm0', 'mm1'), { three, four })).toThrow('nothing was refused')

    const rows = new Draft()
    const [w, five, six] = [rows.input('m k'), rows.input('n k'), rows.input('n k')]
    rows.output(rows.matmul('m k, n k -> m n', w, five))
    rows.output(rows.matmul('m k, n k -> n m', w, six))
    expect(refused(rows, stacked('mm0', 'mm1'), { five, six })).toBe(
      `${begins}their subscripts differ, "m k, n k -> m n" and "m k, n k -> n m"`,
    )

    const turned = new Draft()
    const [y, left, right] = [turned.input('m k'), turned.input('k n'), turned.input('k n')]
    for (const b of [left, right]) turned.output(turned.matmul('m k, k n -> m n', y, b))
    expect(refused(turned, stacked('mm0', 'mm1'), { left, right })).toContain(
      'only matmuls "m k, n k -> m n" stack, got "m k, k n -> m n"',
    )

    const mixed = new Draft()
    const [z, first, second] = [mixed.input('m k'), mixed.input('n k'), mixed.input('k n')]
    mixed.output(mixed.matmul('m k, n k -> m n', z, first))
    mixed.output(mixed.matmul('m k, k n -> m n', z, second))
    expect(refused(mixed, stacked('mm0', 'mm1'), { first, second })).toBe(
      `${begins}their subscripts differ, "m k, n k -> m n" and "m k, k n -> m n"`,
    )
  })
})

describe('an edge with an explicit type', () => {
  it('may be seen in another shape', () => {
    const draft = new Draft()
    const made = twice(draft, draft.input('p*q n'), 'p*q n')
    const seen = draft.view(made, 'p*q n')
    draft.output(twice(draft, seen, 'p*q n'))
    const groups = [...draft.kernels.keys()].map((name) => ({ kernel: `k${name}`, occurrences: [[name]] }))
    const plan = { name: 'p', graph: 'drawn', groups, edges: [{ node: 'op0', dtype: 'f32' as const }] }
    const { values } = prepareGraph(draft.graph(), plan, draft.kernels)
    expect([values[made]?.dtype, values[seen]?.dtype]).toEqual(['f32', 'f32'])
  })
})

describe('order', () => {
  it('of nodes that wait for each other names them', () => {
    const draft = new Draft()
    const x = draft.input('m n')
    const first = twice(draft, x, 'm n')
    const second = twice(draft, first, 'm n')
    draft.output(twice(draft, second, 'm n'))
    const graph = draft.graph()
    // The first op reads the result of the second.
    const nodes: Graph['nodes'] = graph.nodes.map((node) =>
      node.kind === 'op' && node.outputs.y === first ? { ...node, inputs: { x: second } } : node,
    )
    const error = refusal(() => sortNodes(nodes, graph))
    expect([error.code, error.message]).toEqual(['plan.cycle', 'drawn: the plan makes nodes op0, op1, op2 wait for each other'])
    expect(sortNodes([...graph.nodes].reverse(), graph).map(({ name }) => name)).toEqual(['op0', 'op1', 'op2'])
  })
})

it('a plan for a graph that no spec declares is refused', () => {
  const error = refusal(() => graphOf({ name: 'p', graph: 'constructor', groups: [] }, {}))
  expect([error.code, error.message]).toEqual(['plan.graph', 'plan p is for constructor, which no spec declares'])
})
