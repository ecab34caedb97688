/** Tensors that applications read: names of the model's own, of stacks, of int8 weights and of their scales. */
import { describe, expect, it } from 'vitest'
import type { Graph, GraphValue } from '../../src/ir/graph.js'
import type { GraphApplication } from '../../src/runtime/application.js'
import { weightSource, weightSources } from '../../src/runtime/weight_tensors.js'

const value = (dtype: GraphValue['dtype'], layout = 'row'): GraphValue => ({ dtype, shape: [], layout })

const graph: Graph = {
  name: 'layer',
  values: [value({ param: 'T' }), value('i8', 'col32'), value('f32'), value('i8'), value('f32')],
  nodes: [],
  inputs: {},
  weights: { bias: 0, fc: 1, 'fc.steps': 2, qkv: 3, 'qkv.steps': 4 },
  stacked: { qkv: ['query', 'key'] },
  steps: { 'fc.steps': { weight: 'fc', times: 'y.step' }, 'qkv.steps': { weight: 'qkv', times: 'x.step' } },
  outputs: {},
  attrs: [],
}
const application: GraphApplication = {
  label: 'layer3',
  graph,
  inputs: {},
  weights: { bias: 'l3.bias', fc: 'l3.fc', query: 'l3.q', key: 'l3.k' },
  outputs: {},
  attrs: { 'x.step': 0.5, 'y.step': 0.25 },
}

describe('a weight', () => {
  it.each([
    ['bias', { name: 'l3.bias', parts: ['l3.bias'], layout: 'row' }],
    ['fc', { name: 'l3.fc:int8:col32', parts: ['l3.fc'], made: 'int8', layout: 'col32' }],
    ['fc.steps', { name: 'l3.fc:steps:0.25', parts: ['l3.fc'], made: 'steps', factor: 0.25, layout: 'row' }],
    ['qkv', { name: 'l3.q+l3.k:int8:row', parts: ['l3.q', 'l3.k'], made: 'int8', layout: 'row' }],
    ['qkv.steps', { name: 'l3.q+l3.k:steps:0.5', parts: ['l3.q', 'l3.k'], made: 'steps', factor: 0.5, layout: 'row' }],
  ])('%s is made of its tensors', (name, source) => expect(weightSource(application, name)).toEqual(source))

  it('in two layouts, or of two layers, is two tensors', () => {
    const other = { ...application, graph: { ...graph, values: graph.values.with(1, value('i8', 'col4_4r2_8c')) } }
    const next = { ...application, weights: { ...application.weights, fc: 'l4.fc' } }
    const names = [application, other, next].map((each) => weightSource(each, 'fc').name)
    expect(names).toEqual(['l3.fc:int8:col32', 'l3.fc:int8:col4_4r2_8c', 'l4.fc:int8:col32'])
  })

  it('that is declared as int8 is used unchanged: plans have no scale for it', () => {
    const declared = { ...application, graph: { ...graph, steps: { 'qkv.steps': { weight: 'qkv', times: 'x.step' } } } }
    expect(weightSource(declared, 'fc')).toEqual({ name: 'l3.fc', parts: ['l3.fc'], layout: 'col32' })
    expect(weightSource(declared, 'qkv')).toMatchObject({ made: 'int8' })
  })

  it('that is wired to nothing is refused, by itself or as a part', () => {
    const { bias, fc, query } = application.weights
    const unwired = { ...application, weights: { bias, fc, query } } as GraphApplication
    expect(() => weightSource(unwired, 'qkv')).toThrow(
      expect.objectContaining({
        code: 'program.wire',
        message: 'layer3: weight key is not wired',
        hint: 'wired: bias, fc, query',
      }),
    )
    expect(() => weightSources({ ...application, weights: {} })).toThrow('weight bias is not wired')
  })
})

it('lists every weight, in the order of the graph', () => {
  expect(weightSources(application).map(({ name }) => name)).toEqual([
    'l3.bias',
    'l3.fc:int8:col32',
    'l3.fc:steps:0.25',
    'l3.q+l3.k:int8:row',
    'l3.q+l3.k:steps:0.5',
  ])
})
