/** Groups that a search for a plan tries: matmuls of one operand, computed operands, and values with layouts. */
import { autoPlan } from 'heddle'
import { beforeAll, describe, expect, it } from 'vitest'
import { decoderLayers } from '../../specs/graphs/decoder_layer.js'
import { llamaLayer } from '../../specs/graphs/llama_layer.js'
import { costDevice } from '../../src/cost/device.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import type { LayoutsByName } from '../../src/fuse/graph/edit.js'
import type { Kernel } from '../../src/ir/kernel.js'
import type { GraphDecl } from '../../src/lang/graph.js'
import { planSeconds, searchPlan } from '../../src/search/auto.js'
import { explainPlan, type PlanReport } from '../../src/search/explain.js'
import { resolvePlans } from '../../src/search/resolve.js'
import { stacksOf } from '../../src/search/stacks.js'
import { Draft } from './random/draft.js'
import { gated } from './random/gated.js'

const groupsOf = (draft: Draft): readonly string[] =>
  searchPlan('found', draft.graph(), { device: 'h200', ops: draft.kernels, dims: { m: 64, n: 512, k: 512 } })
    .groups.flatMap(({ occurrences }) => occurrences.map((names) => names.join()))
    .sort()

describe('matmuls', () => {
  const text = 'm k, n k -> m n'
  /** Two matmuls of given left factors. */
  const two = (draft: Draft, left: number, other: number): Draft => {
    draft.output(draft.matmul(text, left, draft.input('n k')))
    draft.output(draft.matmul(text, other, draft.input('n k')))
    return draft
  }

  it('of one factor are one kernel', () => {
    const draft = new Draft()
    const x = draft.input('m k')
    expect(groupsOf(two(draft, x, x))).toEqual(['mm0,mm1'])
  })

  it('of one operand after a view are too', () => {
    const draft = new Draft()
    const x = draft.view(draft.input('m1 m2 k'), 'm1*m2 k')
    draft.output(draft.matmul(text, x, draft.input('n k')))
    draft.output(draft.matmul(text, x, draft.input('n k')))
    const dims = { m1: 8, m2: 8, n: 512, k: 512 }
    const { groups } = searchPlan('found', draft.graph(), { device: 'h200', ops: draft.kernels, dims })
    expect(groups.flatMap(({ occurrences }) => occurrences)).toEqual([draft.members()])
  })

  it('of two factors are two', () => {
    const draft = new Draft()
    expect(groupsOf(two(draft, draft.input('m k'), draft.input('m k')))).toEqual([])
  })

  it('of one factor and results of two shapes are two', () => {
    const draft = new Draft()
    const x = draft.input('m k')
    draft.output(draft.matmul(text, x, draft.input('n k')))
    draft.output(draft.matmul(text, x, draft.input('k k')))
    const { groups } = searchPlan('found', draft.graph(), { device: 'h200', ops: draft.kernels, dims: { m: 64, n: 256, k: 512 } })
    expect(groups).toEqual([])
  })
})

describe('a norm before matmuls', () => {
  const dims = (m: number) => ({ m, n: 11008, k: 4096 })
  const found = (m: number) =>
    searchPlan('found', gated().graph(), { device: 'h200', ops: gated().kernels, dims: dims(m) }).groups.flatMap(
      ({ occurrences }) => occurrences,
    )

  it.each([1, 4, 8])('is computed as %i rows are multiplied', (m) => {
    expect(found(m)).toEqual([gated().members()])
  })

  it.each([9, 64, 2048])('is stored if %i rows are multiplied, by many tiles of columns', (m) => {
    expect(found(m)).toEqual([gated().members().slice(1)])
  })

  it('costs its own time, for any number of uses', () => {
    const [norm = '', ...rest] = gated().members()
    const price = (m: number, ...groups: readonly (readonly string[])[]) =>
      planSeconds(
        gated().graph(),
        { name: 'p', graph: 'drawn', groups: groups.map((nodes, i) => ({ kernel: `k${i}`, occurrences: [nodes] })) },
        gated().kernels,
        { device: costDevice('h200'), dims: dims(m), dtype: 'f16' },
      )
    expect(price(8, [norm, ...rest])).toBeLessThan(price(8, rest))
    // It is a launch of the matmul's own then, at the price of that of the norm.
    expect(price(2048, [norm, ...rest])).toBeGreaterThanOrEqual(price(2048, rest))
  })
})

describe('layers of models', () => {
  let ops: ReadonlyMap<string, Kernel>
  let layouts: LayoutsByName
  beforeAll(() => {
    const specs = readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] })
    ops = new Map([...specs.kernels, ...specs.standard].map((kernel) => [kernel.name, kernel]))
    layouts = new Map(specs.layouts.map((layout) => [layout.name, layout]))
  })

  /** Steps of the plan found for a layer without any hints. */
  const found = (layer: GraphDecl): PlanReport => {
    const [plan] = resolvePlans([autoPlan('auto', layer, { device: 'h200' })], { [layer.name]: layer }, ops, layouts)
    if (plan === undefined) throw new Error('no plan')
    const pricing = { device: costDevice('h200'), dims: layer.graph.typical ?? {}, dtype: 'f16' } as const
    const report = explainPlan(layer.graph, plan, ops, pricing, layouts)
    // The search tried every legal merge that is left.
    expect(report.edges.filter(({ reason }) => reason === 'legal, the plan leaves it')).toEqual([])
    return report
  }

  it('of a decoder need no stack and no initial plan: its memory has a layout of heads', () => {
    const { totals, steps } = found(decoderLayers.pre.relu)
    expect(totals.launches).toBeLessThanOrEqual(11)
    expect(steps.filter(({ kind }) => kind === 'decode attention')).toHaveLength(2)
    expect(steps.find(({ covers }) => covers.includes('query'))?.covers).toEqual(expect.arrayContaining(['key', 'value']))
  })

  it('of LLaMA have queries stacked on the keys that several of them share, and norms before both', () => {
    const { totals, steps } = found(llamaLayer('step', { bias: 'heads', norm: false, window: false, caches: 'float' }))
    expect(totals.launches).toBe(5)
    const stack = steps.find(({ nodes }) => nodes.includes('query_key_value'))
    expect([stack?.nodes, stack?.covers]).toEqual([
      ['attentionNorm', 'query_key_value', 'queryBias_keyBias_valueBias'],
      ['attentionNorm', 'query', 'key', 'value', 'queryBias', 'keyBias', 'valueBias'],
    ])
  })

  it('try no stack of two matmuls of one width, which the fastest main loop supports directly', () => {
    const llama = llamaLayer('step', { bias: 'none', norm: false, window: false, caches: 'float' })
    const stacked = [...stacksOf(llama.graph), ...stacksOf(decoderLayers.pre.relu.graph)].flat().map(({ name }) => name)
    expect(new Set(stacked)).toEqual(new Set(['query_key_value', 'queryBias_keyBias_valueBias']))
  })
})
