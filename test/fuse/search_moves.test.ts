/** What a search for a plan tries: matmuls of one factor as one kernel, and groups whose values lie in layouts of their own. */
import { autoPlan } from 'heddle'
import { beforeAll, describe, expect, it } from 'vitest'
import { decoderLayers } from '../../specs/graphs/decoder_layer.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import type { LayoutsByName } from '../../src/fuse/graph/edit.js'
import { searchPlan } from '../../src/fuse/search/auto.js'
import { costDevice } from '../../src/fuse/search/cost.js'
import { explainPlan } from '../../src/fuse/search/explain.js'
import { resolvePlans } from '../../src/fuse/search/resolve.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { Draft } from './random/draft.js'

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

  it('of one factor behind a view are too', () => {
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

describe('a decoder layer', () => {
  let ops: ReadonlyMap<string, Kernel>
  let layouts: LayoutsByName
  beforeAll(() => {
    const specs = readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] })
    ops = new Map([...specs.kernels, ...specs.standard].map((kernel) => [kernel.name, kernel]))
    layouts = new Map(specs.layouts.map((layout) => [layout.name, layout]))
  })

  it('needs no stack to be written, nor a plan to begin with: its memory lies in a layout of heads', () => {
    const layer = decoderLayers.pre.relu
    const [plan] = resolvePlans([autoPlan('auto', layer, { device: 'h200' })], { [layer.name]: layer }, ops, layouts)
    if (plan === undefined) throw new Error('no plan')
    const pricing = { device: costDevice('h200'), dims: layer.graph.typical ?? {}, dtype: 'f16' } as const
    const { totals, steps } = explainPlan(layer.graph, plan, ops, pricing, layouts)
    expect(totals.launches).toBeLessThanOrEqual(11)
    expect(steps.filter(({ kind }) => kind === 'decode attention')).toHaveLength(2)
    expect(steps.find(({ nodes }) => nodes.includes('query'))?.nodes).toEqual(expect.arrayContaining(['key', 'value']))
  })
})
