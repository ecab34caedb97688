/**
 * Packed and stacked plans compute the same for every token as unfused graphs: the shipped ones with their templates, random legal groupings over
 * packed rows, ragged lengths, and rows beyond the last token, which are defined.
 */
import fc from 'fast-check'
import { graph, tensor } from 'heddle'
import { beforeAll, describe, expect, it } from 'vitest'
import { embeddings } from '../../specs/graphs/embeddings.js'
import { encoderLayerGelu } from '../../specs/graphs/encoder_layer.js'
import { firstPooling, hiddenStates, lastPooling, meanPooling, pooler, tokenClassifier } from '../../specs/graphs/heads.js'
import { llamaLayer } from '../../specs/graphs/llama_layer.js'
import { plans } from '../../specs/index.js'
import { HeddleError } from '../../src/errors.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { applyPlan } from '../../src/fuse/apply.js'
import { packingOf } from '../../src/fuse/graph/pack.js'
import type { PlannedKernel } from '../../src/fuse/planned_kernel.js'
import type { Graph } from '../../src/ir/graph.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { parseExtent, parseShape } from '../../src/ir/shape.js'
import type { GraphDecl } from '../../src/lang/graph.js'
import type { PlanDecl } from '../../src/lang/plan.js'
import { placingGraph, stepsFrom } from '../../src/program/conversions.js'
import { refusal } from '../refusal.js'
import { exactly, reordered } from './compare.js'
import { runGraph, shapeOf } from './host.js'
import { dims, lengths, pack, tokens } from './tokens.js'

/** The ragged axis of a program, and a value with one row per token. */
const axis = { batch: parseExtent('b'), seq: parseExtent('s'), tokens: 't', lengths: 0 }
const value = { name: 'x', dtype: { param: 'T' }, shape: parseShape('b*s h*d'), layout: 'row' }

const attrs = { scale: 0.5, eps: 1e-6 }

let ops: ReadonlyMap<string, Kernel>
let packed: Readonly<Record<string, ArrayLike<number>>>

beforeAll(() => {
  ops = new Map(readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] }).kernels.map((kernel) => [kernel.name, kernel]))
  packed = { lengths, ...runGraph(placingGraph(axis).graph, ops, { lengths }, dims, attrs) }
})

/** Random inputs and weights of a graph, by name; ids and lengths are small integers. */
function inputsOf(graph: Graph): Record<string, ArrayLike<number>> {
  let state = 1
  const next = () => {
    state = (Math.imul(state, 48271) >>> 0) % 2147483647
    return state / 2147483647
  }
  const ranges: Readonly<Record<string, number>> = { ids: dims.v, typeIds: dims.u }
  return Object.fromEntries(
    Object.entries({ ...graph.inputs, ...graph.weights }).map(([name, id]) => {
      const size = shapeOf(graph, id, dims).reduce((a, b) => a * b, 1)
      const range = ranges[name]
      const value = range === undefined ? () => next() - 0.5 : () => Math.floor(next() * range)
      return [name, name === 'lengths' ? lengths : Float64Array.from({ length: size }, value)]
    }),
  )
}

/** Runs a planned graph on the packed form of the inputs of the graph it was made from. */
function run(decl: GraphDecl, planned: Graph, kernels: ReadonlyMap<string, PlannedKernel>): Record<string, ArrayLike<number>> {
  const given = inputsOf(decl.graph)
  const inputs = Object.fromEntries(
    Object.entries(planned.inputs).map(([name, id]) => {
      const own = decl.graph.inputs[name] === undefined ? undefined : given[name]
      if (own === undefined || name === 'lengths') return [name, packed[name] ?? []]
      const [first] = planned.values[id]?.shape ?? []
      return [name, first?.dims.join() === 't' ? pack(own, dims.t) : own]
    }),
  )
  const weights = Object.fromEntries(
    Object.keys(planned.weights).map((name) => {
      const parts = planned.stacked?.[name]
      return [name, parts === undefined ? (given[name] ?? []) : parts.flatMap((part) => Array.from(given[part] ?? []))]
    }),
  )
  // Weights and packing inputs may share a name, so they are distinguished by their position in the graph.
  return runGraph(planned, kernels, inputs, dims, attrs, weights)
}

const reference = (decl: GraphDecl) => runGraph(decl.graph, ops, inputsOf(decl.graph), dims, attrs)

/** Compares the rows with tokens; the rest only has to be defined. */
function expectTokens(actual: ArrayLike<number>, expected: ArrayLike<number>, same: typeof exactly): void {
  const padded = expected.length / (dims.b * dims.s)
  expect(Array.from(actual).every(Number.isFinite)).toBe(true)
  same(Array.from(actual).slice(0, tokens * padded), Array.from(pack(expected, dims.t)).slice(0, tokens * padded))
}

const planOf = (name: string, decl: GraphDecl): PlanDecl => {
  const found = plans.find((plan) => plan.name === name && plan.graph === decl.name)
  if (found === undefined) throw new Error(`no plan ${name} for ${decl.name}`)
  return found
}

function planned(plan: PlanDecl, decl: GraphDecl) {
  const { graph, kernels, templates } = applyPlan(decl.graph, plan, ops)
  return { graph, templates, all: new Map<string, PlannedKernel>([...ops, ...kernels, ...templates]) }
}

describe('packing', () => {
  it('places every token once, and marks the rows after the last', () => {
    expect(Array.from(packed.starts ?? [])).toEqual([0, 3, 4])
    expect(Array.from(packed.sequences ?? [])).toEqual([0, 0, 0, 1, 2, 2, 2, 2, 2, -1, -1])
    expect(Array.from(packed.positions ?? [])).toEqual([0, 1, 2, 0, 0, 1, 2, 3, 4, 0, 0])
  })

  it('restored padding is zero', () => {
    const width = dims.h * dims.d
    const x = Float64Array.from({ length: dims.t * width }, (_, i) => i + 1)
    const held = { rows: 'packed', ragged: 0, store: value.dtype, layout: 'row' } as const
    const [restore] = stepsFrom(value, held, [axis], []).filter(({ to }) => to.rows === 'padded')
    if (restore === undefined) throw new Error('no step restores padding')
    const restored = runGraph(restore.graph.graph, ops, { x, ...packed }, dims, attrs).y ?? []
    const row = (at: number) => Array.from(restored).slice(at * width, (at + 1) * width)
    expect(row(0)).toEqual(Array.from(x.slice(0, width)))
    expect(row(3)).toEqual(new Array(width).fill(0))
    expect(row(dims.s)).toEqual(Array.from(x.slice(3 * width, 4 * width)))
  })
})

describe('a matmul whose operands are views of rows', () => {
  /** Sums of products of positions, with both operands read through views, and each position weighted by them. */
  const mixed = graph('mixed', {
    inputs: { x: tensor('T', 'b*s h*d') },
    weights: { keyWeight: tensor('T', 'h*d h*d') },
    build: (g, { x }, { keyWeight }) => {
      const key = g.matmul('m k, n k -> m n', x, keyWeight)
      const split = (value: typeof x) => g.view(value, 'b s h d')
      const scores = g.matmul('b i h d, b j h d -> b h i j', split(x), split(key))
      const values = g.matmul('b h i j, b j h d -> b i h d', scores, split(key))
      const joined = g.view(values, 'b*s h*d')
      return { nodes: { key, scores, values }, outputs: { joined } }
    },
  })
  const plan: PlanDecl = {
    name: 'p',
    graph: 'mixed',
    packed: { batch: 'b', seq: 's', tokens: 't', lengths: 'lengths' },
    groups: [],
  }

  it('has one node for each, with its own name', () => {
    const { graph: made, all } = planned(plan, mixed)
    const steps = made.nodes.flatMap(({ kind, name }) => (kind === 'op' ? [name] : []))
    expect(steps).toEqual(['scores.unpack', 'key.unpack', 'values.unpack', 'values.pack'])
    // Rows that are restored as zeros add nothing.
    const full = run(mixed, made, all).joined ?? []
    expect(
      Array.from(full)
        .slice(0, tokens * dims.h * dims.d)
        .some((value) => value !== 0),
    ).toBe(true)
  })

  it('accepts a group with both', () => {
    const groups = [{ kernel: 'scored', occurrences: [['scores.unpack', 'key.unpack', 'scores']] }]
    expect(() => applyPlan(mixed.graph, { ...plan, groups }, ops)).not.toThrow(/defect/)
  })
})

describe('shipped plans', () => {
  it('ft-v2.1 is 6 matmuls and 6 kernels a layer, and equals unfused bit for bit', () => {
    const { graph, all } = planned(planOf('ft-v2.1', encoderLayerGelu), encoderLayerGelu)
    expect(graph.nodes.filter((node) => node.kind === 'matmul')).toHaveLength(6)
    expect(graph.nodes.filter((node) => node.kind === 'op')).toHaveLength(6)
    expectTokens(run(encoderLayerGelu, graph, all).hidden ?? [], reference(encoderLayerGelu).hidden ?? [], exactly)
  })

  it('best-encoder is 7 kernels a layer, and equals unfused', () => {
    const { graph, all } = planned(planOf('best-encoder', encoderLayerGelu), encoderLayerGelu)
    expect(graph.nodes.filter((node) => node.kind !== 'view').map((node) => node.kind)).toEqual(new Array(7).fill('op'))
    expectTokens(run(encoderLayerGelu, graph, all).hidden ?? [], reference(encoderLayerGelu).hidden ?? [], reordered)
  })

  it('a planted wrong score is noticed', () => {
    const { graph, templates, all } = planned(planOf('best-encoder', encoderLayerGelu), encoderLayerGelu)
    const attention = templates.get('attention')
    if (attention?.kind !== 'attention') throw new Error('no attention kernel')
    const wrong = { ...attention, score: { kind: 'local', type: 'f32', name: 'raw' } as const }
    const values = run(encoderLayerGelu, graph, new Map([...all, ['attention', wrong]])).hidden ?? []
    const compare = () => expectTokens(values, reference(encoderLayerGelu).hidden ?? [], reordered)
    expect(compare).toThrow()
  })

  it.each([
    ['embeddings', embeddings, 'hidden'],
    ['token_classifier', tokenClassifier, 'logits'],
    ['token_classifier', tokenClassifier, 'labels'],
    ['hidden_states', hiddenStates, 'states'],
  ] as const)('best-encoder packs %s', (_, decl, output) => {
    const { graph, all } = planned(planOf('best-encoder', decl), decl)
    expectTokens(run(decl, graph, all)[output] ?? [], reference(decl)[output] ?? [], exactly)
  })

  it('best-encoder pools the first token of each sequence', () => {
    const { graph, all } = planned(planOf('best-encoder', pooler), pooler)
    exactly(Array.from(run(pooler, graph, all).pooled ?? []), Array.from(reference(pooler).pooled ?? []))
  })

  it.each([meanPooling, firstPooling, lastPooling])('best-encoder makes one row of each sequence: $name', (decl) => {
    const { graph, all } = planned(planOf('best-encoder', decl), decl)
    exactly(Array.from(run(decl, graph, all).rows ?? []), Array.from(reference(decl).rows ?? []))
  })

  it('a sum over positions cannot be one kernel with their unpacking: no tensor of it has their number', () => {
    const plan = { ...planOf('best-encoder', meanPooling), groups: [{ kernel: 'k', occurrences: [['mean.unpack', 'mean']] }] }
    expect(refusal(() => planned(plan, meanPooling))).toMatchObject({
      code: 'plan.illegal',
      message: expect.stringMatching(/^group k: nodes mean.unpack and mean cannot be one kernel: extent s is of /),
    })
  })
})

describe('random groupings of the packed, stacked layer', () => {
  const base = {
    packed: { batch: 'b', seq: 's', tokens: 't', lengths: 'lengths' },
    stacked: [{ name: 'qkv', nodes: ['query', 'key', 'value'] }],
  }
  /** Chains that may be cut anywhere; parallel chains are cut in the same way and may be fused horizontally. */
  const chains = [
    ['query', 'key', 'value'].map((part) => [part, `${part}Bias`, `${part}Heads.unpack`, `${part}Heads`]),
    [['scaled', 'masked', 'probabilities']],
    [['merged', 'merged.pack']],
    [['projectionBias', 'attentionResidual', 'attentionNorm']],
    [['fc1Bias', 'fc1Activation']],
    [['fc2Bias', 'outputResidual', 'outputNorm']],
  ]
  /** The groups that result from a cut after each position whose bit is set. */
  const segments = (columns: readonly (readonly string[])[], cuts: readonly boolean[], together: boolean): string[][] => {
    const starts = [0, ...cuts.flatMap((cut, i) => (cut ? [i + 1] : []))]
    const split = columns.map((names) => starts.map((start, i) => names.slice(start, starts[i + 1])))
    return together ? starts.map((_, i) => split.flatMap((column) => column[i] ?? [])) : split.flat()
  }

  it('every legal grouping equals unfused bit for bit; every refusal is a plan error', () => {
    const expected = reference(encoderLayerGelu).hidden ?? []
    let legal = 0
    const cuts = fc.tuple(fc.boolean(), fc.boolean(), fc.boolean())
    fc.assert(
      fc.property(fc.array(cuts, { minLength: 6, maxLength: 6 }), fc.boolean(), (bits, together) => {
        const groups = chains.flatMap((columns, chain) => {
          const length = columns[0]?.length ?? 0
          const found = segments(columns, bits[chain]?.slice(0, length - 1) ?? [], together)
          return found.map((names, i) => ({ kernel: `group${chain}_${i}`, occurrences: [names] }))
        })
        try {
          const { graph, all } = planned({ name: 'random', graph: encoderLayerGelu.name, ...base, groups }, encoderLayerGelu)
          expectTokens(run(encoderLayerGelu, graph, all).hidden ?? [], expected, exactly)
          legal += 1
        } catch (error) {
          if (!(error instanceof HeddleError && error.code.startsWith('plan.')) || error.code === 'plan.defect') throw error
        }
      }),
      { numRuns: 120, seed: 11 },
    )
    expect(legal).toBeGreaterThanOrEqual(100)
  })
})

describe('rows that an author packs', () => {
  const { graph } = llamaLayer('prompt', { bias: 'none', norm: false, window: false, caches: 'float' })
  const renamed = (name: string, inputs: Readonly<Record<string, number>>): Graph => ({
    ...graph,
    nodes: graph.nodes.map((node) =>
      node.kind === 'op' && node.name === name ? { ...node, inputs: { ...node.inputs, ...inputs } } : node,
    ),
  })
  const { starts, lengths, sequences, positions, first = -1, writers = -1 } = graph.inputs

  it('are at the positions in its inputs', () => {
    expect(packingOf(graph)).toMatchObject({ starts, lengths, sequences, positions, tokens: parseExtent('t') })
    expect(packingOf({ ...graph, nodes: graph.nodes.filter(({ name }) => name !== 'context') })).toBeUndefined()
    expect(packingOf({ ...graph, nodes: graph.nodes.filter(({ name }) => name !== 'queryRuns') })).toBeUndefined()
  })

  it('are unknown if two nodes have different ones, or ones that the graph computes', () => {
    const both = [...graph.nodes, ...renamed('queryRuns', { starts: first }).nodes]
    expect(packingOf({ ...graph, nodes: both })).toBeUndefined()
    expect(packingOf({ ...graph, inputs: { ...graph.inputs, starts: writers } })).toBeUndefined()
  })
})
