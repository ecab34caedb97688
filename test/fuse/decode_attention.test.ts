/**
 * Decoder layers under their plans, several steps in sequence: the number of kernels that the plans promise, and the values of the unfused graph for
 * every beam table, with caches in which only the decoded positions are numbers. And groups that are refused.
 */
import { type GraphBuilder, type GraphTensor, graph, tensor } from 'heddle'
import { beforeAll, describe, expect, it } from 'vitest'
import { decoderLayers } from '../../specs/graphs/decoder_layer.js'
import { plans } from '../../specs/index.js'
import { splitHeads as splitHeadsLayout } from '../../specs/layouts/split_heads.js'
import { relu } from '../../specs/ops/activations.js'
import { appendStep } from '../../specs/ops/append_step.js'
import { gatherBeams } from '../../specs/ops/beams.js'
import { softmax } from '../../specs/ops/softmax.js'
import { maskSteps } from '../../specs/ops/steps.js'
import { HeddleError } from '../../src/errors.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { applyPlan } from '../../src/fuse/apply.js'
import type { LayoutsByName } from '../../src/fuse/graph/edit.js'
import type { PlannedKernel } from '../../src/fuse/planned_kernel.js'
import { call, i32, index } from '../../src/ir/build.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { printExpr } from '../../src/ir/print.js'
import { printTemplate } from '../../src/ir/print_template.js'
import type { DecodeAttentionKernel } from '../../src/ir/template.js'
import type { GraphDecl } from '../../src/lang/graph.js'
import { integer, normal, random } from '../../src/verify/random.js'
import { exactly, reordered } from './compare.js'
import { runGraph, shapeOf } from './host.js'

let ops: ReadonlyMap<string, Kernel>
let layouts: LayoutsByName
beforeAll(() => {
  const specs = readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] })
  ops = new Map(specs.kernels.map((kernel) => [kernel.name, kernel]))
  layouts = new Map(specs.layouts.map((layout) => [layout.name, layout]))
})

const dims = { b: 2, w: 3, s: 5, t: 4, h: 2, d: 3, i: 5 }
const attrs = { scale: 0.6, eps: 1e-6 }
const rows = dims.b * dims.w
const { pre, post } = decoderLayers
const layers = [pre.relu, pre.gelu, post.relu, post.silu]

type Values = Readonly<Record<string, ArrayLike<number>>>

/** Elements of a cache at positions from `step` on. */
const places = (cache: ArrayLike<number>, step: number, value: (at: number) => number): Float64Array =>
  Float64Array.from(cache, (known, at) => (Math.floor(at / (dims.h * dims.d)) % dims.s >= step ? value(at) : known))

/** Decodes `steps` steps: each with random inputs, table and weights, and the caches of the previous step. `unknown` fills undecoded positions. */
function decode(
  { graph: declared }: GraphDecl,
  planned: GraphDecl['graph'],
  kernels: ReadonlyMap<string, PlannedKernel>,
  steps: number,
  unknown: number,
) {
  const next = random(declared.name)
  const draw = (id: number) =>
    Float64Array.from({ length: shapeOf(declared, id, dims).reduce((a, b) => a * b, 1) }, () => normal(next) / 2)
  const weights = Object.fromEntries(Object.entries(declared.weights).map(([name, id]) => [name, draw(id)]))
  const stacked = Object.fromEntries(
    Object.keys(planned.weights).map((name) => [
      name,
      planned.stacked?.[name]?.flatMap((part) => [...(weights[part] ?? [])]) ?? weights[name] ?? [],
    ]),
  )
  const memory = Object.fromEntries(['memoryKeys', 'memoryValues'].map((name) => [name, draw(declared.inputs[name] ?? -1)]))
  let caches: Values = Object.fromEntries(['keys', 'values'].map((name) => [name, draw(declared.inputs[name] ?? -1)]))
  const results: Values[] = []
  for (let step = 0; step < steps; step++) {
    const beams = Array.from({ length: rows * dims.s }, (_, at) => (at % dims.s <= step ? integer(next, 0, rows - 1) : at % rows))
    const given: Values = {
      ...memory,
      x: draw(declared.inputs.x ?? -1),
      step: [step],
      beams,
      lengths: [dims.t, 1],
      ...Object.fromEntries(Object.entries(caches).map(([name, cache]) => [name, places(cache, step, () => unknown)])),
    }
    const made = runGraph(planned, kernels, given, dims, attrs, { ...weights, ...stacked })
    results.push(made)
    caches = { keys: made.keys ?? [], values: made.values ?? [] }
  }
  return results
}

function planOf(name: string, { graph: { name: of } }: GraphDecl) {
  const found = plans.find((plan) => plan.name === name && plan.graph === of)
  if (found === undefined) throw new Error(`no plan ${name} for ${of}`)
  return found
}

function planned(name: string, decl: GraphDecl) {
  const { graph: made, kernels, templates } = applyPlan(decl.graph, planOf(name, decl), ops, layouts)
  return { graph: made, templates, all: new Map<string, PlannedKernel>([...ops, ...kernels, ...templates]) }
}

const steps = 3

/** Compares every step with the unfused graph. Undecoded positions are zero there, and must not be read in the fused one. */
function expectEqual(decl: GraphDecl, made: GraphDecl['graph'], kernels: ReadonlyMap<string, PlannedKernel>): void {
  const expected = decode(decl, decl.graph, ops, steps, 0)
  for (const [step, { hidden = [], keys = [], values = [] }] of decode(decl, made, kernels, steps, Number.NaN).entries()) {
    const wanted = expected[step] ?? {}
    reordered(Array.from(hidden), Array.from(wanted.hidden ?? []))
    for (const [cache, other] of [
      [keys, wanted.keys ?? []],
      [values, wanted.values ?? []],
    ] as const) {
      exactly([...places(cache, step + 1, () => 0)], [...places(other, step + 1, () => 0)])
      expect([...places(cache, step + 1, () => -1)].filter((value) => value === -1)).toHaveLength(
        Array.from(cache).filter((value) => Number.isNaN(value)).length,
      )
    }
  }
}

describe('plans of a decoder layer', () => {
  it.each(layers.map((layer) => [layer.name, layer] as const))(
    'best-decoder makes 11 kernels of %s, which equal the unfused graph',
    (_, layer) => {
      const { graph: made, all } = planned('best-decoder', layer)
      expect(made.nodes.filter(({ kind }) => kind !== 'view').map(({ kind }) => kind)).toEqual(new Array(11).fill('op'))
      expectEqual(layer, made, all)
    },
  )

  it.each(layers.filter(({ name }) => name.includes('pre')).map((layer) => [layer.name, layer] as const))(
    'norms-in-matmuls makes 8 kernels of %s, which equal the unfused graph',
    (_, layer) => {
      const { graph: made, all } = planned('norms-in-matmuls', layer)
      expect(made.nodes.filter(({ kind }) => kind !== 'view').map(({ kind }) => kind)).toEqual(new Array(8).fill('op'))
      expectEqual(layer, made, all)
    },
  )

  it.each(layers.map((layer) => [layer.name, layer] as const))(
    'ft-v2.1 makes 6 matmuls and the kernels between them of %s',
    (name, layer) => {
      const { graph: made, all } = planned('ft-v2.1', layer)
      expect(made.nodes.filter(({ kind }) => kind === 'matmul')).toHaveLength(6)
      expect(made.nodes.filter(({ kind }) => kind === 'op')).toHaveLength(name.includes('pre') ? 7 : 6)
      expectEqual(layer, made, all)
    },
  )

  it('print the computation of attention', () => {
    const { templates } = planned('ft-v2.1', pre.relu)
    const kernel = templates.get('decode_attention_bias')
    expect(kernel === undefined ? '' : printTemplate(kernel)).toBe(
      [
        'decode attention decode_attention_bias: out = softmax over j of score(query . key), times value; b sequence, h head, i query, j place, c element',
        '  query  x[b, 0, h, c] + queryBias[h, c] for i < 1',
        '  owner  beams[b, j]',
        '  key    keys[owner, j, h, ..] for 0 <= j < step[0] + 1',
        '  value  values[owner, j, h, ..]',
        '  fresh  place step[0]',
        '  key    x[b, 1, h, c] + keyBias[h, c], to y[b, j, h, ..]',
        '  value  x[b, 2, h, c] + valueBias[h, c], to y2[b, j, h, ..]',
        '  score  raw * factor',
        '  out    y3[b, h, ..]',
        '',
      ].join('\n'),
    )
  })

  const step = { kind: 'load', type: 'i32', tensor: 'step', indices: [i32(0)] } as const
  it.each<[string, Partial<DecodeAttentionKernel> | ((kernel: DecodeAttentionKernel) => Partial<DecodeAttentionKernel>)]>([
    ['a step less', { range: { lower: i32(0), upper: step } }],
    ['a step more', { range: { lower: i32(0), upper: call('add', step, i32(2)) } }],
    ['a table that is ignored', { owner: index('b') }],
    [
      'a key and a value stored at the next place',
      ({ fresh }) => ({ fresh: fresh === undefined ? fresh : { ...fresh, place: call('add', step, i32(1)) } }),
    ],
    ['caches that are exchanged', ({ key, value }) => ({ key: value, value: key })],
  ])('%s is noticed', (_, change) => {
    const { graph: made, templates, all } = planned('best-decoder', pre.relu)
    const kernel = templates.get('decode_attention')
    if (kernel?.kind !== 'decode attention') throw new Error('no decode attention')
    const wrong = { ...kernel, ...(typeof change === 'function' ? change(kernel) : change) }
    expect(() => expectEqual(pre.relu, made, new Map([...all, ['decode_attention', wrong]]))).toThrow()
  })
})

type Nodes = Readonly<Record<string, GraphTensor>>
interface Given {
  readonly query: GraphTensor
  readonly key: GraphTensor
  readonly value: GraphTensor
  readonly keys: GraphTensor
  readonly values: GraphTensor
  readonly beams: GraphTensor
  readonly other: GraphTensor
  readonly rows: GraphTensor
  readonly step: GraphTensor
}

/** Attention of a step, of the past that `past` makes. */
const stepOf = (name: string, past: (g: GraphBuilder, given: Given) => { key: GraphTensor; value: GraphTensor; nodes: Nodes }) =>
  graph(`step_${name}`, {
    inputs: {
      query: tensor('T', 'r h d'),
      key: tensor('T', 'r h d'),
      value: tensor('T', 'r h d'),
      keys: tensor('T', 'r s h d', splitHeadsLayout),
      values: tensor('T', 'r s h d', splitHeadsLayout),
      beams: tensor('i32', 'r s'),
      other: tensor('i32', 'r s'),
      rows: tensor('T', 'r s h d'),
      step: tensor('i32', '1'),
    },
    weights: {},
    build: (g, given) => {
      const { key, value, nodes } = past(g, given)
      const scores = g.matmul('r h d, r s h d -> r h s', given.query, key)
      const masked = g.apply(maskSteps, { x: scores, step: given.step }).y
      const probabilities = g.apply(softmax, { x: g.view(masked, 'r*h s') }).y
      const context = g.matmul('r h s, r s h d -> r h d', g.view(probabilities, 'r h s'), value)
      return { nodes: { ...nodes, scores, masked, probabilities, context }, outputs: { context } }
    },
  })

function apply(decl: GraphDecl, left: readonly string[] = []) {
  const all = decl.graph.nodes.flatMap(({ kind, name }) => (kind === 'view' || left.includes(name) ? [] : [name]))
  return applyPlan(decl.graph, { name: 'test', graph: decl.name, groups: [{ kernel: 'made', occurrences: [all] }] }, ops, layouts)
}

function refusal(decl: GraphDecl, left?: readonly string[]): HeddleError {
  try {
    apply(decl, left)
  } catch (error) {
    if (error instanceof HeddleError) return error
    throw error
  }
  throw new Error('the plan was accepted')
}

describe('a group', () => {
  it('may leave the append to another kernel: then the place of the step is read from memory', () => {
    const decl = stepOf('appended', (g, { keys, values, beams }) => {
      const key = g.apply(gatherBeams, { cache: keys, beams }).y
      const value = g.apply(gatherBeams, { cache: values, beams }).y
      return { key, value, nodes: { pastKeys: key, pastValues: value } }
    })
    const made = apply(decl).templates.get('made')
    expect(made).toMatchObject({ kind: 'decode attention', fresh: undefined })
    expect(made?.tensors.map(({ name }) => name)).toEqual(['step', 'query', 'beams', 'keys', 'values', 'y'])
  })

  it('may read caches without a table', () => {
    const decl = stepOf('plain', (_, { keys, values }) => ({ key: keys, value: values, nodes: {} }))
    expect(apply(decl).templates.get('made')).toMatchObject({ owner: index('b') })
  })

  it.each<[string, GraphDecl, readonly string[], string]>([
    [
      'stores the key of a step and not its value',
      stepOf('half', (g, given) => {
        const keyCache = g.apply(appendStep, { cache: given.keys, x: given.key, step: given.step }).y
        return { key: keyCache, value: given.values, nodes: { keyCache } }
      }),
      ['scores', 'context'],
      'keys and values are stored at different places',
    ],
    [
      'changes the past on the way',
      stepOf('changed', (g, { rows: own, values }) => {
        const past = g.apply(relu, { x: g.view(own, 'r*s h*d') }).y
        return { key: g.view(past, 'r s h d'), value: values, nodes: { past } }
      }),
      ['past'],
      'expected elements along the axes of the matmul, "r s h d", got "r*s d*h"',
    ],
  ])('that %s is refused', (_, decl, nodes, reason) => {
    const { code, message } = refusal(decl)
    expect(code).toBe('plan.illegal')
    for (const text of [...nodes, reason]) expect(message).toContain(text)
  })

  /** Attention of one query, whose `relu` sees it as `rows`. */
  const queried = (name: string, rows: string) =>
    graph(`query_${name}`, {
      inputs: { query: tensor('T', 'r h d'), keys: tensor('T', 'r s h d'), values: tensor('T', 'r s h d') },
      weights: {},
      build: (g, { query, keys, values }) => {
        const made = g.apply(relu, { x: g.view(query, rows) }).y
        const scores = g.matmul('r h d, r s h d -> r h s', g.view(made, 'r h d'), keys)
        const probabilities = g.apply(softmax, { x: g.view(scores, 'r*h s') }).y
        const context = g.matmul('r h s, r s h d -> r h d', g.view(probabilities, 'r h s'), values)
        return { nodes: { made, scores, probabilities, context }, outputs: { context } }
      },
    })

  it('takes queries of heads from rows of all heads; rows of one head make tiles of queries', () => {
    const kernel = apply(queried('rows', 'r h*d')).templates.get('made')
    if (kernel?.kind !== 'decode attention') throw new Error('no decode attention')
    expect(printExpr(kernel.query)).toBe('maximum(x[b, h, c], 0.0)')
    const other = apply(queried('heads', 'r*h d')).templates.get('made')
    expect(other).toMatchObject({ kind: 'attention', query: { element: kernel.query } })
  })

  it('with keys and values through different tables is a loop with a lookup per element', () => {
    const decl = stepOf('tables', (g, { keys, values, beams, other }) => {
      const key = g.apply(gatherBeams, { cache: keys, beams }).y
      const value = g.apply(gatherBeams, { cache: values, beams: other }).y
      return { key, value, nodes: { pastKeys: key, pastValues: value } }
    })
    const made = apply(decl).templates.get('made')
    if (made?.kind !== 'attention') throw new Error('no attention kernel')
    const read = (operand: typeof made.key) => (operand.element === undefined ? '' : printExpr(operand.element))
    expect([read(made.key), read(made.value)]).toEqual(['keys[beams[b, j], j, h, c]', 'values[other[b, j], j, h, c]'])
  })

  it('may have axes of any names, and none for heads', () => {
    const decl = graph('other_products', {
      inputs: { x: tensor('T', 'r h d'), y: tensor('T', 'r h d') },
      weights: {},
      build: (g, { x, y }) => {
        const scores = g.matmul('r h d, r t d -> r h t', x, y)
        const probabilities = g.apply(softmax, { x: g.view(scores, 'r*h h') }).y
        const context = g.matmul('r h t, r t d -> r h d', g.view(probabilities, 'r h h'), y)
        return { nodes: { scores, probabilities, context }, outputs: { context } }
      },
    })
    expect(apply(decl).templates.get('made')).toMatchObject({ kind: 'attention', heads: i32(1) })
  })
})
