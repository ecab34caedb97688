/** Refusals of groups that name the missing part and offer the repair, which is then applied; and explanations of plans that `gen` accepts. */
import { graph, op, plan, tensor } from 'heddle'
import { describe, expect, it } from 'vitest'
import { costDevice } from '../../src/cost/device.js'
import { applyPlan } from '../../src/fuse/apply.js'
import { call, f32, i32 } from '../../src/ir/build.js'
import type { ValueId } from '../../src/ir/graph.js'
import type { PlanDecl } from '../../src/lang/plan.js'
import { explainPlan } from '../../src/search/explain.js'
import { planAll } from '../../src/search/plans.js'
import { refusal } from '../refusal.js'
import { at } from './attention_draft.js'
import { Draft } from './random/draft.js'

const axes = ['m', 'n'] as const
const step = (draft: Draft, x: ValueId, factor: number): ValueId =>
  draft.each(axes, { m: 'm', n: 'n' }, { x: { value: x, dims: axes } }, ({ x: given }, { m = i32(0), n = i32(0) }) =>
    call('mul', at(given, m, n), f32(factor)),
  )
const groupsOf = (groups: Readonly<Record<string, readonly string[] | readonly (readonly string[])[]>>): PlanDecl => ({
  name: 'p',
  graph: 'drawn',
  groups: Object.entries(groups).map(([kernel, nodes]) => ({
    kernel,
    occurrences: nodes.every((node) => typeof node === 'string') ? [nodes as readonly string[]] : (nodes as string[][]),
  })),
})

/** A chain of ops over `m n`. */
function chain(length: number): Draft {
  const draft = new Draft()
  let x = draft.input('m n')
  for (let i = 0; i < length; i++) x = step(draft, x, i + 2)
  draft.output(x)
  return draft
}

describe('a group without the nodes between two of its nodes', () => {
  it.each([
    [['op0', 'op2'], 'op1 is between them', "add it to the group: 'op1'"],
    [['op0', 'op3'], 'op1 and op2 are between them', "add them to the group: 'op1', 'op2'"],
  ])('%j gets the missing nodes, and is a kernel with them', (nodes, reason, hint) => {
    const draft = chain(4)
    const error = refusal(() => applyPlan(draft.graph(), groupsOf({ k: nodes }), draft.kernels))
    expect([error.code, error.message.includes(reason), error.hint?.startsWith(hint)]).toEqual(['plan.illegal', true, true])
    const added = [...(error.hint ?? '').matchAll(/'(\w+)'/g)].flatMap(([, name]) => name ?? [])
    expect(() => applyPlan(draft.graph(), groupsOf({ k: [...nodes, ...added] }), draft.kernels)).not.toThrow()
  })
})

it('a factor that others read too is a kernel with them', () => {
  const draft = new Draft()
  const x = step(draft, draft.input('m n'), 2)
  draft.output(draft.matmul('m k, j k -> m j', x, draft.input('j n')))
  draft.output(draft.matmul('m k, j k -> m j', x, draft.input('j n')))
  const error = refusal(() => applyPlan(draft.graph(), groupsOf({ k: ['op0', 'mm1'] }), draft.kernels))
  expect(error.message).toContain('op0 is needed outside of the group, by mm2,')
  expect(error.hint).toBe('take mm2 into the group too, or leave op0 out of it')
  expect(() => applyPlan(draft.graph(), groupsOf({ k: ['op0', 'mm1', 'mm2'] }), draft.kernels)).not.toThrow()
})

it('a factor that is a result of the graph is left out', () => {
  const draft = new Draft()
  const x = step(draft, draft.input('m n'), 2)
  draft.output(x)
  draft.output(draft.matmul('m k, j k -> m j', x, draft.input('j n')))
  const { message, hint } = refusal(() => applyPlan(draft.graph(), groupsOf({ k: ['op0', 'mm1'] }), draft.kernels))
  expect([message.includes('as a result of the graph'), hint]).toEqual([true, 'leave op0 out of the group'])
})

describe('a name that is not a node', () => {
  it('is taken for the one that it is like', () => {
    const draft = chain(20)
    const { code, hint } = refusal(() => applyPlan(draft.graph(), groupsOf({ k: ['op0', 'opp1'] }), draft.kernels))
    expect([code, hint?.includes('op1')]).toEqual(['plan.node', true])
  })

  it('is reported as an input if it is one', () => {
    const draft = chain(2)
    const { message, hint } = refusal(() => applyPlan(draft.graph(), groupsOf({ k: ['in0', 'op0'] }), draft.kernels))
    expect(message).toBe('plan p: group k names in0, which is an input of drawn and no node')
    expect(hint).toMatch(/^name a node that reads it/)
  })
})

it('a view in a group is reported as a view', () => {
  const twice = op('twice', {
    dims: ['m', 'n'],
    inputs: { x: tensor('f32', 'm n') },
    outputs: { y: tensor('f32', 'm n') },
    body:
      ({ x }) =>
      (m, c) => ({ y: x(m, c) * 2 }),
  })
  const { graph: viewed } = graph('viewed', {
    inputs: { x: tensor('f32', 'b h*d') },
    weights: {},
    build: (g, { x }) => {
      const rows = g.view(x, 'b*h d')
      const { y } = g.apply(twice, { x: rows })
      return { nodes: { rows, y }, outputs: { y } }
    },
  })
  const { code, message, hint } = refusal(() => applyPlan(viewed, groupsOf({ k: ['rows', 'y'] }), new Map()))
  expect([code, message]).toEqual(['plan.node', 'plan p: group k names rows, which is a view in viewed, and no op or matmul'])
  expect(hint).toBe('name the op or the matmul that reads it, or whose result it shows: a view computes nothing')
})

describe('a plan is explained if gen accepts it, and otherwise refused like in gen', () => {
  const pricing = { device: costDevice('h200'), dims: { m: 8, n: 16 }, dtype: 'f16' } as const
  const draft = chain(6)
  const told = (decl: PlanDecl) => {
    const shown = refusal(() => explainPlan(draft.graph(), decl, draft.kernels, pricing))
    const made = refusal(() => planAll([decl], { drawn: { graph: draft.graph() } }, [...draft.kernels.values()]))
    expect([shown.code, shown.message]).toEqual([made.code, made.message])
    return [shown.code, shown.message]
  }

  it('if occurrences derive different kernels', () => {
    const decl = groupsOf({ k: [['op0'], ['op1', 'op2']] })
    expect(told(decl)).toEqual(['plan.differ', 'plan p: the occurrences of k derive different kernels'])
  })

  it('where a group is called like an op', () => {
    expect(told(groupsOf({ op5: ['op0', 'op1'] }))).toEqual(['plan.differ', 'plan p: group op5 has the name of an op'])
  })

  it('if a node is in two groups, by their names', () => {
    const decl = groupsOf({ k: ['op0', 'op1'], l: ['op1', 'op2'] })
    expect(told(decl)).toEqual(['plan.overlap', 'plan p: node op1 is in groups k and l'])
  })

  it('if a group is empty', () => {
    expect(told(groupsOf({ k: [[]] }))).toEqual(['plan.empty', 'plan p: group k holds no node'])
  })

  it('if an edge inside of a group has a type', () => {
    const decl = { ...groupsOf({ k: ['op0', 'op1'], l: ['op2', 'op3'] }), edges: [{ node: 'op0', dtype: 'f32' as const }] }
    const [code, message] = told(decl)
    expect([code, message?.includes('it lies inside of group k, where nothing is stored')]).toEqual(['plan.edge', true])
    const between = { ...decl, edges: [{ node: 'op1', dtype: 'f32' as const }] }
    expect(() => explainPlan(draft.graph(), between, draft.kernels, pricing)).not.toThrow()
  })

  it('if it is right', () => {
    expect(explainPlan(draft.graph(), groupsOf({ k: ['op0', 'op1'] }), draft.kernels, pricing).steps).toHaveLength(5)
  })
})

it('axes that separate nodes are named', () => {
  const draft = new Draft()
  const x = step(draft, draft.input('m n'), 2)
  const y = draft.each(
    ['n', 'm'],
    { m: 'm', n: 'n' },
    { x: { value: x, dims: axes } },
    ({ x: given }, { m = i32(0), n = i32(0) }) => at(given, m, n),
  )
  draft.output(x)
  draft.output(y)
  const { code, message } = refusal(() => applyPlan(draft.graph(), groupsOf({ k: ['op0', 'op1'] }), draft.kernels))
  expect([code, message]).toEqual([
    'plan.illegal',
    'group k: nodes op0 and op1 cannot be one kernel: their iteration spaces differ: op0 runs along m, and the kernel over rows "n" along "m"',
  ])
})

it('a misspelt field of a plan is reported by name', () => {
  const empty = graph('empty', {
    inputs: { x: tensor('T', 'm k') },
    weights: { w: tensor('T', 'n k') },
    build: (g, { x }, { w }) => {
      const y = g.matmul('m k, n k -> m n', x, w)
      return { nodes: { y }, outputs: { y } }
    },
  })
  const misspelt = { group: { k: ['y'] } } as unknown as { groups: Record<string, never[]> }
  const { code, message, hint } = refusal(() => plan('p', empty, misspelt))
  expect(code).toBe('plan.declared')
  expect(message).toContain('group')
  expect(`${message} ${hint}`).toContain('groups')
})
