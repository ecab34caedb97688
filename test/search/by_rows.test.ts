/** Plans by numbers of rows: where their graphs are kept, what a project may declare, and that the default plan is never one for few rows. */
import { describe, expect, it } from 'vitest'
import { plannedGraphsSchema } from '../../src/emit/manifest/graphs.js'
import { call, f32 } from '../../src/ir/build.js'
import type { Graph, ValueId } from '../../src/ir/graph.js'
import { graphAt, nodesAtAnyRows } from '../../src/ir/graph_rows.js'
import { parseExtent } from '../../src/ir/shape.js'
import type { PlanDecl } from '../../src/lang/plan.js'
import { linkGraph } from '../../src/search/link.js'
import { planAll } from '../../src/search/plans.js'
import { at } from '../fuse/attention_draft.js'
import { Draft } from '../fuse/random/draft.js'
import { refusal } from '../refusal.js'

/** Two elementwise ops over an input of this shape, one after the other. */
function pair(shape = 'b*s n'): Draft {
  const draft = new Draft()
  const [rows = '', columns = ''] = shape.split(' ')
  const axes = columns === '' ? (['m'] as const) : (['m', 'n'] as const)
  const extents = columns === '' ? { m: rows } : { m: rows, n: columns }
  const step = (x: ValueId, factor: number): ValueId =>
    draft.each(axes, extents, { x: { value: x, dims: axes } }, ({ x: given }, { m, n }) =>
      call('mul', axes.length === 1 ? at(given, m) : at(given, m, n), f32(factor)),
    )
  draft.output(step(step(draft.input(shape), 2), 3))
  return draft
}

const plan = (name: string, groups: PlanDecl['groups'], more: Partial<PlanDecl> = {}): PlanDecl => ({
  ...{ name, graph: 'drawn', groups },
  ...more,
})
const one = plan('one kernel', [{ kernel: 'both', occurrences: [['op0', 'op1']] }])
const two = plan('two kernels', [])
const byRows = (few: Readonly<Record<number, string>>): Partial<PlanDecl> => ({
  byRows: Object.entries(few).map(([most, name]) => ({ most: Number(most), plan: name })),
})
const planned = (draft: Draft, ...plans: readonly PlanDecl[]) =>
  planAll(plans, { drawn: { graph: draft.graph() } }, [...draft.kernels.values()]).graphs
const opsOf = ({ nodes }: Graph): readonly string[] => nodes.flatMap((node) => (node.kind === 'op' ? [node.op] : []))
const refused = (draft: Draft, ...plans: readonly PlanDecl[]) => {
  const { code, message, hint, about } = refusal(() => planned(draft, ...plans))
  return { code, message, hint, path: about?.path }
}

describe('a graph under a plan by rows', () => {
  const { many, few } = (() => {
    const graphs = planned(pair(), one, two, plan('many', [], byRows({ 1: 'one kernel', 12: 'two kernels' })))
    return { many: graphs.many?.drawn, few: graphs['one kernel']?.drawn }
  })()
  if (many === undefined || few === undefined) throw new Error('the plans have no graph')

  it('runs the plan of the fewest rows that hold the given ones', () => {
    const ops = (b: number, s: number) => opsOf(graphAt(many, { b, s, n: 7 }))
    expect(ops(1, 1)).toEqual(['both'])
    for (const [b, s] of [
      [2, 1],
      [1, 2],
      [3, 4],
    ] as const)
      expect(ops(b, s)).toEqual(['op0', 'op1'])
    expect(graphAt(many, { b: 1, s: 1, n: 7 })).toEqual(few)
    expect(graphAt(many, { b: 13, s: 1, n: 7 })).toBe(many)
  })

  it('is kept with them in a manifest', () => {
    expect(plannedGraphsSchema.parse(JSON.parse(JSON.stringify({ many: { drawn: many } }))).many?.drawn).toEqual(
      JSON.parse(JSON.stringify(many)),
    )
    expect(nodesAtAnyRows(many)).toHaveLength(2 + 1 + 2)
  })

  it('runs kernels by their names in generated source, at any number of rows', () => {
    const standard = (graph: Graph): Graph => ({
      ...graph,
      nodes: graph.nodes.map((node) => (node.kind === 'op' ? { ...node, op: `std.${node.op}` } : node)),
    })
    const byName = {
      ...standard(many),
      byRows: { rows: parseExtent('b*s'), few: [{ most: 1, plan: 'few', graph: standard(few) }] },
    }
    const linked = linkGraph(byName)
    expect(nodesAtAnyRows(linked).flatMap((node) => (node.kind === 'op' ? [node.op] : []))).toEqual(['op0', 'op1', 'both'])
  })

  it('does not depend on the order of the plans', () => {
    const early = planned(pair(), plan('many', [], byRows({ 1: 'one kernel' })), one)
    expect(early.many?.drawn?.byRows?.few.map(({ most, plan: name }) => [most, name])).toEqual([[1, 'one kernel']])
  })
})

describe('a plan by rows is refused', () => {
  it('if it names no other plan of the graph', () => {
    expect(refused(pair(), one, plan('many', [], byRows({ 4: 'one kernal' })))).toEqual({
      code: 'plan.byRows',
      message: 'plan many: there is no plan one kernal of drawn to run at few rows',
      hint: 'plans of this graph without byRows: known: one kernel; add it to the list plans that the specs export',
      path: ['byRows', '4'],
    })
  })

  it('if it names itself, or a plan that names others', () => {
    expect(refused(pair(), plan('many', [], byRows({ 4: 'many' }))).code).toBe('plan.byRows')
    const both = [plan('some', [], byRows({ 1: 'one kernel' })), plan('many', [], byRows({ 4: 'some' }))]
    expect(refused(pair(), one, ...both).message).toBe('plan many: there is no plan some of drawn to run at few rows')
  })

  it('if the other takes or returns something else', () => {
    const packed = plan('packed', one.groups, { packed: { batch: 'b', seq: 's', tokens: 't' } })
    const { code, message } = refused(pair(), packed, plan('many', [], byRows({ 4: 'packed' })))
    expect([code, message]).toEqual([
      'plan.byRows',
      'plan packed cannot run in place of many: expected input in0 T [b*s n] in layout row, got input in0 T [t n] in layout row',
    ])
  })

  it('if the graph has no rows', () => {
    const { code, message } = refused(pair('n'), plan('one kernel', one.groups), plan('many', [], byRows({ 4: 'one kernel' })))
    expect([code, message]).toEqual(['plan.byRows', 'plan many: input in0 of drawn has no rows: its shape is n'])
  })
})
