/** Plans by rows at the end of a search: which plan a shape prefers, and which numbers of rows go to which. */
import { describe, expect, it } from 'vitest'
import { byRows, preferred, runsAt } from '../../src/bench/search/by_rows.js'
import { foundPlans } from '../../src/bench/search/run.js'
import { costDevice } from '../../src/cost/device.js'
import { call, f32 } from '../../src/ir/build.js'
import type { ValueId } from '../../src/ir/graph.js'
import { coversOf } from '../../src/search/covers.js'
import { measuredSearch } from '../../src/search/measured.js'
import { planSource } from '../../src/search/plan_source.js'
import { planAll } from '../../src/search/plans.js'
import { problemOf } from '../../src/search/problem.js'
import { at } from '../fuse/attention_draft.js'
import { Draft } from '../fuse/random/draft.js'

const around = (median: number): readonly number[] => Array.from({ length: 21 }, (_, i) => median * (1 + (i - 10) / 5000))
const all = () => true

describe('a shape prefers', () => {
  it('the main plan unless another is faster by more than two percent', () => {
    const plans = [
      [10, 10, 10],
      [9.5, 9.9, 12],
      [9.4, 11, 9.85],
    ].map((medians) => medians.map(around))
    expect(preferred(plans, 0)).toEqual([2, 0, 0])
    expect(preferred(plans, 1)).toEqual([1, 1, 2])
  })

  it('the main plan where samples are too few, or no rank test tells them apart', () => {
    const wide = [1, 30, 2, 29, 3, 28, 10, 11, 9.9, 10.1, 20]
    expect(preferred([[wide], [wide.map((each) => each * 0.95)]], 0)).toEqual([0])
    expect(preferred([[[10, 10]], [[5, 5]]], 0)).toEqual([0])
    expect(preferred([[around(10)], [around(9.5)]], 0)).toEqual([1])
  })
})

describe('few rows', () => {
  it('go to the plan that their shapes prefer, up to the first that prefers the main one', () => {
    expect(byRows([32, 1, 512], [0, 1, 0], 0, all)).toEqual({ main: 0, few: [{ most: 1, at: 1 }], others: new Map() })
    expect(byRows([1, 4, 9, 512], [1, 1, 2, 0], 0, all).few).toEqual([
      { most: 4, at: 1 },
      { most: 9, at: 2 },
    ])
    const split = byRows([1, 8, 64], [0, 1, 0], 0, all)
    expect(split).toEqual({ main: 0, few: [], others: new Map([[1, [1]]]) })
    expect(runsAt(split, [1, 8, 64], 1)).toBe(0)
  })

  it('stay with the main plan where shapes of as many rows disagree, or weights differ', () => {
    expect(byRows([4, 4, 64], [1, 0, 0], 0, all)).toEqual({ main: 0, few: [], others: new Map([[1, [0]]]) })
    expect(byRows([4, 64], [1, 0], 0, (at) => at === 0)).toEqual({ main: 0, few: [], others: new Map([[1, [0]]]) })
  })

  it('have no bound where no shape prefers the main plan', () => {
    const split = byRows([1, 8, 64], [1, 2, 2], 0, all)
    expect(split).toEqual({ main: 2, few: [{ most: 1, at: 1 }], others: new Map() })
    expect([0, 1, 2].map((shape) => runsAt(split, [1, 8, 64], shape))).toEqual([1, 2, 2])
  })
})

it('are written as plans that a project accepts together, whatever names their kernels would have alone', async () => {
  const draft = new Draft()
  const axes = ['m', 'n'] as const
  const step = (x: ValueId, factor: number): ValueId =>
    draft.each(axes, { m: 'm', n: 'n' }, { x: { value: x, dims: axes } }, ({ x: given }, { m, n }) =>
      call('mul', at(given, m, n), f32(factor)),
    )
  draft.output(step(step(step(draft.input('m n'), 2), 3), 4))
  const graph = draft.graph()
  const shapes = [1, 64].map((m) => ({ m, n: 8 }))
  const ops = new Map([...draft.kernels])
  const problem = problemOf(graph, { ops, layouts: new Map(), shapes, dtype: 'f32', device: costDevice('h200') })
  const result = await measuredSearch(problem.problem, { isOver: () => true, time: async () => new Set() })
  const [whole, ...others] = coversOf(problem.problem, 9, (launches) => launches.length)
  const pair = others.find(({ chosen }) => chosen.length === 2)
  if (whole === undefined || pair === undefined) throw new Error('too few covers')
  const run = { name: 'found', graph, problem, packed: undefined, known: new Map() }
  const found = foundPlans(run, result, [{ cover: whole }, { cover: pair, most: 1 }])
  expect(found.map(({ plan, most }) => [plan.name, plan.byRows, most])).toEqual([
    ['found', [{ most: 1, plan: 'found-2' }], undefined],
    ['found-2', undefined, 1],
  ])
  const names = found.flatMap(({ plan }) => plan.groups.map(({ kernel }) => kernel))
  expect(new Set(names).size).toBe(names.length)
  const { graphs } = planAll(
    found.map(({ plan }) => plan),
    { [graph.name]: { graph } },
    [...draft.kernels.values()],
  )
  expect(graphs.found?.[graph.name]?.byRows?.few).toHaveLength(1)
  const text = found.map(({ plan, reasons }) =>
    planSource({ plan, reasons, exported: 'found', head: [], shapes: [], graph: undefined }),
  )
  expect(text[0]).toContain("    },\n    byRows: { 1: 'found-2' },\n  })\n")
  expect(text[1]).not.toContain('byRows')
})
