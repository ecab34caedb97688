/** Automatic plans: never worse than the written ones by the model, equal to unfused in their results, deterministic, and explained edge by edge. */
import { graph, op, row, tensor } from 'heddle'
import { beforeAll, describe, expect, it } from 'vitest'
import { embeddings } from '../../specs/graphs/embeddings.js'
import { encoderLayerGelu, encoderLayerGeluTanh, encoderLayerRelu } from '../../specs/graphs/encoder_layer.js'
import { pooler, tokenClassifier } from '../../specs/graphs/heads.js'
import { graphs, plans } from '../../specs/index.js'
import { ftV1 } from '../../specs/plans/ft_v1.js'
import { costDevice } from '../../src/cost/device.js'
import { HeddleError } from '../../src/errors.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { applyPlan } from '../../src/fuse/apply.js'
import type { PlannedKernel } from '../../src/fuse/planned_kernel.js'
import { call, i32, index } from '../../src/ir/build.js'
import type { Kernel } from '../../src/ir/kernel.js'
import type { Layout } from '../../src/ir/layout.js'
import type { GraphDecl } from '../../src/lang/graph.js'
import { openMemo } from '../../src/memo.js'
import { planSeconds, type SearchOptions, searchPlan } from '../../src/search/auto.js'
import { Candidates } from '../../src/search/candidates.js'
import { explainPlan } from '../../src/search/explain.js'
import { cycleOf } from '../../src/search/merges.js'
import { planAll } from '../../src/search/plans.js'
import { resolvePlans } from '../../src/search/resolve.js'
import { axis, kernel, loadInt, tensor as parameter } from '../schedule/fixtures.js'
import { inTurn } from '../turns.js'
import { reordered } from './compare.js'
import { runGraph, shapeOf } from './host.js'
import { planOf } from './plan_of.js'

const ftV1Gelu = planOf(ftV1, encoderLayerGelu)

const packing = { packed: { batch: 'b', seq: 's', tokens: 't', lengths: 'lengths' } }
const stacking = {
  stacked: [
    { name: 'qkv', nodes: ['query', 'key', 'value'] },
    { name: 'qkvBias', nodes: ['queryBias', 'keyBias', 'valueBias'] },
  ],
}
const usual = encoderLayerGelu.graph.typical ?? {}
let kernels: readonly Kernel[]
let layouts: readonly Layout[]
let ops: ReadonlyMap<string, Kernel>

beforeAll(() => {
  const read = readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] })
  kernels = [...read.kernels, ...read.standard]
  layouts = read.layouts
  ops = new Map(kernels.map((each) => [each.name, each]))
})

const searchAgain = (decl: GraphDecl, options: Partial<SearchOptions> = {}) =>
  searchPlan('found', decl.graph, { device: 'h200', ops, ...options })
const found = new Map<string, ReturnType<typeof searchAgain>>()

/** Searches once for each question, since a search finds the same every time. */
function search(decl: GraphDecl, options: Partial<SearchOptions> = {}): ReturnType<typeof searchAgain> {
  if (options.kernels !== undefined) return searchAgain(decl, options)
  const question = `${decl.name} ${JSON.stringify(options)}`
  const plan = found.get(question) ?? searchAgain(decl, options)
  found.set(question, plan)
  return plan
}

describe('by the model', () => {
  const shapes = [
    [1, 32],
    [32, 128],
    [8, 512],
  ] as const

  it.each(inTurn(shapes))('a found plan is never worse than ft-v1 at %ix%i', (b, s) => {
    const dims = { ...usual, b, s, t: b * s }
    const pricing = { device: costDevice('h200'), dims, dtype: 'f16' } as const
    const written = planSeconds(encoderLayerGelu.graph, ftV1Gelu, ops, pricing)
    for (const given of [{}, packing, stacking, { ...packing, ...stacking }]) {
      const found = search(encoderLayerGelu, { dims, ...given })
      expect(planSeconds(encoderLayerGelu.graph, found, ops, pricing)).toBeLessThanOrEqual(written)
    }
  })

  it('a better known plan is used, with its stacks', () => {
    const better = { ...search(encoderLayerGelu, stacking), name: 'better' }
    const found = search(encoderLayerGelu, { known: [better] })
    expect(found).toEqual({ ...better, name: 'found' })
    expect(found.groups).not.toEqual(search(encoderLayerGelu).groups)
  })

  it('a known plan that packs otherwise, or is of another graph, is not', () => {
    const better = search(encoderLayerGelu, { ...packing, ...stacking })
    const other = search(encoderLayerRelu, stacking)
    expect(search(encoderLayerGelu, { known: [better, other] })).toEqual(search(encoderLayerGelu))
  })

  it('a known plan with library groups, which cost as much as generated kernels, is not', () => {
    const { groups, ...rest } = search(encoderLayerGelu, stacking)
    const product = groups.find(({ kernel }) => kernel === 'auto_matmul_add_bias')
    const library = product === undefined ? [] : [product.kernel]
    expect(library).toHaveLength(1)
    expect(search(encoderLayerGelu, { known: [{ ...rest, groups, library }] })).toEqual(search(encoderLayerGelu))
  })

  it('finds the groups of best-encoder by itself', () => {
    const written = plans.find(({ name, graph: of }) => name === 'best-encoder' && of === encoderLayerGelu.name)
    const sets = (groups: (typeof plans)[number]['groups']) =>
      groups.flatMap(({ occurrences }) => occurrences.map((names) => [...names].sort().join())).sort()
    expect(sets(search(encoderLayerGelu, { ...packing, ...stacking }).groups)).toEqual(sets(written?.groups ?? []))
  })
})

describe('found plans', () => {
  const dims = { b: 2, s: 3, h: 2, d: 4, i: 5, v: 17, u: 2, p: 5, c: 3 }
  const attrs = { scale: 0.5, eps: 1e-6 }

  /** Random values; ids and lengths are small integers. */
  const inputsOf = (decl: GraphDecl): Record<string, ArrayLike<number>> => {
    let state = 1
    const next = () => {
      state = (Math.imul(state, 48271) >>> 0) % 2147483647
      return state / 2147483647
    }
    const ranges: Readonly<Record<string, number>> = { ids: dims.v, typeIds: dims.u }
    return Object.fromEntries(
      Object.entries({ ...decl.graph.inputs, ...decl.graph.weights }).map(([name, id]) => {
        const length = shapeOf(decl.graph, id, dims).reduce((a, b) => a * b, 1)
        const range = ranges[name]
        const value = range === undefined ? () => next() - 0.5 : () => Math.floor(next() * range)
        return [name, name === 'lengths' ? [3, 2] : Float64Array.from({ length }, value)]
      }),
    )
  }

  it.each([encoderLayerGelu, encoderLayerGeluTanh, encoderLayerRelu, embeddings, tokenClassifier, pooler])(
    '$name computes the same as unfused',
    (decl) => {
      const given = inputsOf(decl)
      const planned = applyPlan(decl.graph, search(decl), ops)
      const all = new Map<string, PlannedKernel>([...ops, ...planned.kernels, ...planned.templates])
      const stacks = Object.entries(planned.graph.stacked ?? {}).map(
        ([name, parts]) => [name, parts.flatMap((part) => Array.from(given[part] ?? []))] as const,
      )
      const stacked = { ...given, ...Object.fromEntries(stacks) }
      const [found, expected] = [
        runGraph(planned.graph, all, stacked, dims, attrs),
        runGraph(decl.graph, ops, given, dims, attrs),
      ]
      expect(planned.graph.nodes.filter(({ kind }) => kind !== 'view').length).toBeLessThan(
        decl.graph.nodes.filter(({ kind }) => kind !== 'view').length,
      )
      for (const [name, values] of Object.entries(expected)) reordered(Array.from(found[name] ?? []), Array.from(values))
    },
  )

  it('are the same every time', () => {
    expect(searchAgain(encoderLayerGelu)).toEqual(search(encoderLayerGelu))
  })

  it('are named after their ops, and after a known kernel if they derive the same', () => {
    const fresh = search(encoderLayerGelu).groups.map((group) => group.kernel)
    expect(fresh).toEqual(['auto_matmul_add_bias', 'auto_attention', 'auto_matmul_add_bias_add', 'auto_matmul_add_bias_gelu'])
    const { templates } = planAll(plans, graphs, kernels, layouts, new Set<string>(), openMemo(process.cwd()))
    const known = new Map(templates.map((template) => [template.name, template]))
    const reused = search(encoderLayerGelu, { kernels: known }).groups.map((group) => group.kernel)
    expect(reused).toEqual(['matmul_bias', 'auto_attention', 'matmul_bias_residual', 'matmul_bias_gelu'])
  })

  it('in the specs, are resolved whatever the order, and add only kernels no written plan has', () => {
    const resolved = resolvePlans([...plans].reverse(), graphs, ops, new Map(layouts.map((layout) => [layout.name, layout])))
    expect(resolved.map(({ name }) => name).sort()).toEqual(plans.map(({ name }) => name).sort())
    const named = (auto: boolean) =>
      new Set(
        resolved.filter(({ name }) => (name === 'auto') === auto).flatMap(({ groups }) => groups.map((group) => group.kernel)),
      )
    const written = named(false)
    expect([...named(true)].filter((name) => !written.has(name)).every((name) => name.startsWith('auto_'))).toBe(true)
    expect(named(true).has('attention')).toBe(true)
  })
})

describe('edges', () => {
  const pricing = { device: costDevice('h200'), dims: usual, dtype: 'f16' } as const
  const edge = (producer: string, consumer: string) =>
    explainPlan(encoderLayerGelu.graph, ftV1Gelu, ops, pricing).edges.find(
      (each) => each.producer === producer && each.consumer === consumer,
    )

  it('name both sides, and two nodes that conflict, or the one that no kernel takes', () => {
    const { edges } = explainPlan(encoderLayerGelu.graph, ftV1Gelu, ops, pricing)
    const names = new Set<string>(encoderLayerGelu.nodes)
    const refused = edges.filter(({ legal }) => !legal)
    expect(refused.length).toBeGreaterThan(0)
    for (const { producer, consumer, gain, reason } of refused) {
      const two = /^nodes (\w+) and (\w+) cannot be one kernel: ./.exec(reason)
      const one = /^node (\w+) cannot be in the kernel: ./.exec(reason)
      const named = two === null ? [one?.[1]] : [two[1], two[2]]
      expect([producer, consumer, ...named].every((name) => names.has(name ?? ''))).toBe(true)
      expect(gain).toBeUndefined()
    }
  })

  it('state which merges a plan leaves, and their gain', () => {
    expect(edge('fc1', 'fc1Bias')).toMatchObject({ legal: true, reason: 'legal, the plan leaves it' })
    expect(edge('fc1', 'fc1Bias')?.gain).toBeGreaterThan(1.2)
  })

  it('within a step are not listed', () => {
    expect(edge('scaled', 'masked')).toBeUndefined()
  })

  it('that would make rows multi-pass do not gain', () => {
    // Rows of 65,536 exceed the registers: merged, each of three passes reads both summands instead of their sum.
    const { rates } = pricing.device
    const bytesAlone = { ...pricing.device, launch: 0, rates: { ...rates, cache: Number.POSITIVE_INFINITY } }
    const wide = { device: bytesAlone, dims: { ...usual, h: 1024, d: 64 }, dtype: 'f16' } as const
    const { edges } = explainPlan(encoderLayerGelu.graph, { ...ftV1Gelu, groups: [] }, ops, wide)
    const verdict = edges.find(({ consumer }) => consumer === 'attentionNorm')
    expect(verdict).toMatchObject({ producer: 'attentionResidual', legal: true, reason: 'legal, the model predicts no gain' })
  })
})

describe('groups that wait for each other', () => {
  const double = op('double', {
    dims: ['o', 'b'],
    inputs: { x: tensor('i32', 'o b') },
    outputs: { y: tensor('i32', 'o b') },
    body:
      ({ x }, { b }) =>
      (o) => ({ y: row(b, (c) => x(o, c) * 2) }),
  })
  const doubleKernel = kernel(
    'double',
    'o b',
    [axis('r', 'o')],
    [parameter('x', 'in', 'o b', 'i32'), parameter('y', 'out', 'o b', 'i32')],
    [
      {
        kind: 'storeRow',
        tensor: 'y',
        rows: [index('r')],
        length: { kind: 'dim', type: 'i32', name: 'b' },
        index: 'c',
        value: call('mul', loadInt('x', index('r'), index('c')), i32(2)),
      },
    ],
  )
  const crossed = graph('crossed', {
    inputs: { x: tensor('i32', 'o b'), z: tensor('i32', 'o b') },
    weights: {},
    build: (g, { x, z }) => {
      const first = g.apply(double, { x }).y
      const second = g.apply(double, { x: first }).y
      const third = g.apply(double, { x: z }).y
      const fourth = g.apply(double, { x: third }).y
      return { nodes: { first, second, third, fourth }, outputs: { second, fourth } }
    },
  })
  const known = new Map([['double', doubleKernel]])

  it('are a reason not to merge', () => {
    const candidates = new Candidates(crossed.graph, { name: 'p', graph: 'crossed', groups: [] }, known, {
      device: costDevice('h200'),
      dims: { o: 2, b: 4 },
      dtype: 'f16',
    })
    expect(
      cycleOf(candidates, [
        ['first', 'second'],
        ['third', 'fourth'],
      ]),
    ).toBeUndefined()
    expect(
      cycleOf(candidates, [
        ['first', 'fourth'],
        ['third', 'second'],
      ])?.code,
    ).toBe('plan.cycle')
  })

  it('are avoided by the search', () => {
    const found = searchPlan('found', crossed.graph, { device: 'h200', ops: known, dims: { o: 2, b: 4 } })
    expect(found.groups.map(({ occurrences }) => occurrences)).toEqual([[['first', 'second', 'third', 'fourth']]])
    expect(() => applyPlan(crossed.graph, found, known)).not.toThrow()
  })
})

it('a device the model lacks is a usage error', () => {
  expect(() => search(encoderLayerGelu, { device: 'abacus' })).toThrow(HeddleError)
})
