/** Declarations of a graph that no pass guesses from a name: inputs that place packed rows, and its usual sizes. */
import { describe, expect, it } from 'vitest'
import { costDevice } from '../../src/cost/device.js'
import { priceDims, stepCost } from '../../src/cost/step.js'
import { isPackStep, packGraph } from '../../src/fuse/graph/pack.js'
import { type GraphBuilder, type GraphConfig, type GraphTensor, graph } from '../../src/lang/graph.js'
import { op } from '../../src/lang/op.js'
import { isNodeOf } from '../../src/lang/op_node.js'
import type { Packing } from '../../src/lang/plan.js'
import { tensor } from '../../src/lang/tensor.js'
import type { Tensors } from '../../src/lang/types.js'
import { searchPlan } from '../../src/search/auto.js'
import { packRows } from '../../src/std/index.js'
import { refusal } from '../refusal.js'

const sums = op('row_sums', {
  dims: ['b', 's', 'n'],
  types: { T: ['f32'] },
  inputs: { x: tensor('T', 'b s n') },
  outputs: { y: tensor('T', 'b s n') },
  body:
    ({ x }) =>
    (b, s, c) => ({ y: x(b, s, c) }),
})

const layer = (inputs: Tensors) =>
  graph('layer', {
    inputs: { x: tensor('T', 'b*s n'), ...inputs },
    weights: {},
    build: (g, { x }) => {
      const made = g.apply(sums, { x: g.view(x, 'b s n') }).y
      return { nodes: { made }, outputs: { y: g.view(made, 'b*s n') } }
    },
  }).graph

const packed = { batch: 'b', seq: 's', tokens: 't' }
const pack = (inputs: Tensors, more: Partial<Packing> = {}) => packGraph(layer(inputs), { ...packed, ...more }, new Map())

describe('the position of packed rows', () => {
  it('follows from inputs of the graph, whatever their names', () => {
    const { inputs, packing } = pack({ valid: tensor('i32', 'b') }, { lengths: 'valid' })
    expect(packing).toMatchObject({
      tokens: { factor: 1, dims: ['t'] },
      lengths: inputs.valid,
      starts: inputs.starts,
      sequences: inputs.sequences,
      positions: inputs.positions,
    })
    expect(Object.keys(inputs)).toEqual(['x', 'valid', 'starts', 'sequences', 'positions'])
  })

  it('is a new input if the graph has none', () => {
    const { inputs, packing } = pack({})
    expect(inputs.lengths).toBeDefined()
    expect(packing?.lengths).toBe(inputs.lengths)
  })

  it.each([
    ['another input of such a name', { starts: tensor('i32', 'b') }, {}, 'an input starts, and it has one of its own'],
    ['one that nothing says to be lengths', { lengths: tensor('i32', 'b') }, {}, 'an input lengths, and it has one of its own'],
    ['lengths of tokens', { l: tensor('i32', 'b*s') }, { lengths: 'l' }, 'expected lengths i32 "b", got l, i32 "t"'],
    ['lengths that are floats', { l: tensor('f32', 'b') }, { lengths: 'l' }, 'expected lengths i32 "b", got l, f32 "b"'],
  ] as const)('is not read from %s', (_, inputs, more, message) => {
    expect(refusal(() => pack(inputs, more))).toMatchObject({ code: 'plan.packed', message: expect.stringContaining(message) })
  })
})

it("a node that removes other padding than the graph's own is not mistaken for it", () => {
  const places = { sequences: tensor('i32', 'z'), positions: tensor('i32', 'z') } as const
  const made = graph('layer', {
    inputs: { x: tensor('T', 'b*s n'), seqs: places.sequences, poss: places.positions },
    weights: {},
    build: (g, { x, seqs, poss }) => {
      const kept = g.apply(sums, { x: g.view(x, 'b s n') }).y
      const chosen = g.apply(packRows, { x: kept, sequences: seqs, positions: poss }).y
      return { nodes: { kept, chosen }, outputs: { y: g.view(kept, 'b*s n'), chosen } }
    },
  }).graph
  const graphOfTokens = packGraph(made, packed, new Map())
  const steps = graphOfTokens.nodes.filter((node) => isPackStep(graphOfTokens, node)).map(({ name }) => name)
  expect(graphOfTokens.nodes.filter((node) => isNodeOf(packRows, node)).map(({ name }) => name)).toEqual(['chosen', 'kept.pack'])
  expect(steps).toEqual(['kept.pack'])
  expect(made.nodes.some((node) => isPackStep(made, node))).toBe(false)
})

const rows = (typical?: GraphConfig<Tensors, Tensors, never, string, string>['typical']) =>
  graph('rows', {
    inputs: { x: tensor('T', 'q e') },
    weights: { w: tensor('T', 'z e') },
    ...(typical === undefined ? {} : { typical }),
    build: (g, { x }, { w }) => {
      const product = g.matmul('m k, n k -> m n', x, w)
      return { nodes: { product }, outputs: { product } }
    },
  }).graph

describe('how large a graph usually is', () => {
  const flops = (given: Parameters<typeof rows>[0], dims = {}) => {
    const made = rows(given)
    const [node] = made.nodes
    if (node?.kind !== 'matmul') throw new Error('no product')
    const pricing = { device: costDevice('h200'), dims: priceDims(made, undefined, dims), dtype: 'f16' } as const
    return stepCost(made, node, undefined, pricing).flops
  }

  it('determines predictions, whatever the names of its dimensions', () => {
    expect(flops({ q: 2, e: 3, z: 5 })).toBe(60)
    expect(flops({ q: 2, e: 3, z: 5 }, { q: 4 })).toBe(120)
  })

  it('is not guessed: a price needs every dimension', () => {
    const search = (typical?: Parameters<typeof rows>[0]) =>
      searchPlan('found', rows(typical), { device: 'h200', ops: new Map() })
    expect(refusal(() => search({ q: 2, z: 5 }))).toMatchObject({ code: 'graph.dim', message: 'dimension e of e has no value' })
    expect(search({ q: 2, e: 3, z: 5 }).groups).toEqual([])
  })

  it('names dimensions of the graph', () => {
    expect(refusal(() => rows({ q: 2, d: 64 }))).toMatchObject({ code: 'graph.typical', message: 'rows: it has no dimension d' })
    expect(refusal(() => rows({ q: 0 }))).toMatchObject({
      code: 'graph.typical',
      message: 'rows: expected a positive integer for q, got 0',
    })
  })

  it('is checked by the TypeScript compiler too, names that only nodes have included', () => {
    const inputs = { x: tensor('T', 'q*e z') }
    const build = (g: GraphBuilder, { x }: { readonly x: GraphTensor }) => {
      const seen = g.view(x, 'q e z')
      return { nodes: {}, outputs: { seen } }
    }
    const typical = { q: 1, e: 2, z: 3 }
    expect(graph('seen', { inputs, weights: {}, typical, build }).graph.typical).toEqual(typical)
    // @ts-expect-error no tensor has a dimension r
    expect(refusal(() => graph('seen', { inputs, weights: {}, typical: { r: 1 }, build })).code).toBe('graph.typical')
    expect(refusal(() => graph('seen', { inputs, weights: {}, dims: ['r'], build })).code).toBe('graph.dims')
  })

  it('has as many packed rows as full sequences have tokens, unless it states their number', () => {
    const dims = { b: 2, s: 3 }
    expect(priceDims(rows(), packed, dims)).toEqual({ b: 2, s: 3, t: 6 })
    expect(priceDims(rows(), packed, { ...dims, t: 4 })).toEqual({ b: 2, s: 3, t: 4 })
  })
})
