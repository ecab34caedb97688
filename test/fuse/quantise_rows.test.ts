/**
 * Values whose rows are quantised where they are produced, and weight-only int8: compared with plain arithmetic written here, if scales of rows can
 * pass through views and moves, and refused with the reason otherwise.
 */
import { type GraphBuilder, type GraphDecl, type GraphTensor, graph, type TensorDecl, tensor } from 'heddle'
import { packRows } from 'heddle/std'
import { beforeAll, describe, expect, it } from 'vitest'
import { splitHeads as headsLayout } from '../../specs/layouts/split_heads.js'
import { add } from '../../specs/ops/add.js'
import { wordLookup } from '../../specs/ops/embedding_lookup.js'
import { mergeHeads } from '../../specs/ops/merge_heads.js'
import { rmsNorm } from '../../specs/ops/rms_norm.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { applyPlan } from '../../src/fuse/apply.js'
import { prepareGraph } from '../../src/fuse/passes.js'
import type { PlannedKernel } from '../../src/fuse/planned_kernel.js'
import type { Graph, NodeOf } from '../../src/ir/graph.js'
import type { Kernel } from '../../src/ir/kernel.js'
import type { PlanDecl, QuantisedDecl } from '../../src/lang/plan.js'
import { planAll } from '../../src/search/plans.js'
import { integer, random, uniform } from '../../src/verify/random.js'
import { refusal } from '../refusal.js'
import { runGraph } from './host.js'
import { eitherRow, orFloat, orOne, shrink, wholeFloats } from './quantise_ops.js'

type Given = Readonly<Record<string, GraphTensor>>
type Numbers = readonly number[]

let ops: ReadonlyMap<string, Kernel>
beforeAll(() => {
  ops = new Map(
    readSpecsOrThrow({ root: process.cwd(), specs: ['specs', 'test/fuse/quantise_ops.ts'] }).kernels.map((kernel) => [
      kernel.name,
      kernel,
    ]),
  )
})

const dims = { m: 5, k: 6, n: 6, h: 2, d: 3, b: 2, s: 3, t: 4, v: 7 }

const decl = (of: GraphDecl, asked: Partial<QuantisedDecl>, groups: PlanDecl['groups'] = []): PlanDecl => ({
  name: 'test',
  graph: of.name,
  groups,
  quantised: { values: [], dynamic: [], weightOnly: [], only: [], across: [], weights: 'row', ...asked },
})
const prepared = (of: GraphDecl, asked: Partial<QuantisedDecl>): Graph => prepareGraph(of.graph, decl(of, asked), ops)

const made = (
  name: string,
  inputs: Readonly<Record<string, TensorDecl>>,
  weights: Readonly<Record<string, TensorDecl>>,
  build: (g: GraphBuilder, x: Given) => Given,
): GraphDecl =>
  graph(name, {
    inputs,
    weights,
    build: (g, x, w) => {
      const nodes = build(g, { ...x, ...w } as Given)
      const last = Object.values(nodes).at(-1)
      if (last === undefined) throw new Error(`${name} has no node`)
      return { nodes, outputs: { last } }
    },
  }) as GraphDecl
const of = (given: Given, name: string): GraphTensor => {
  const found = given[name]
  if (found === undefined) throw new Error(`no value ${name}`)
  return found
}

const floats = (name: string, length: number): Numbers => {
  const next = random(name)
  return Array.from({ length }, () => uniform(next, -2, 2))
}
const int8 = (name: string, length: number): Numbers => {
  const next = random(name)
  return Array.from({ length }, () => integer(next, -127, 127))
}
const at = (values: ArrayLike<number>, i: number): number => values[i] ?? Number.NaN

/** A row quantised with its own scale, and the scale. */
function inSteps(row: Numbers): { readonly ints: Numbers; readonly step: number } {
  const amax = Math.max(...row.map(Math.abs))
  const step = amax / 127
  return { step, ints: row.map((value) => (amax === 0 ? 0 : Math.round(value / step))) }
}
const rowsOf = (values: Numbers, columns: number): Numbers[] =>
  Array.from({ length: values.length / columns }, (_, row) => values.slice(row * columns, (row + 1) * columns))

/** Rows times a weight `[n, k]` of int8 with a step for each of its rows. */
const product = (rows: readonly Numbers[], weight: Numbers, channels: Numbers): Numbers =>
  rows.flatMap((row) => {
    const { ints, step } = inSteps(row)
    return channels.map((channel, n) => ints.reduce((sum, x, k) => sum + x * at(weight, n * row.length + k), 0) * step * channel)
  })

function close(found: ArrayLike<number>, expected: Numbers): void {
  expect(found.length).toBe(expected.length)
  for (const [i, value] of expected.entries()) expect(at(found, i)).toBeCloseTo(value, 6)
}

const linear = 'm k, n k -> m n'
const normed = made(
  'normed_product',
  { x: tensor('T', 'm k'), r: tensor('T', 'm n') },
  { gamma: tensor('T', 'k'), w: tensor('T', 'n k') },
  (g, x) => {
    const norm = g.apply(rmsNorm, { x: of(x, 'x'), gamma: of(x, 'gamma') }).y
    const sums = g.matmul(linear, norm, of(x, 'w'))
    return { norm, sums, added: g.apply(add, { x: sums, y: of(x, 'r') }).z }
  },
)
const zeroRow = 3
const given = {
  x: floats('x', dims.m * dims.k).map((value, i) => (Math.floor(i / dims.k) === zeroRow ? 0 : value * (1 + i))),
  r: floats('r', dims.m * dims.n),
}
const weights = {
  gamma: floats('gamma', dims.k),
  w: int8('w', dims.n * dims.k),
  'w.steps': floats('steps', dims.n).map((step) => Math.abs(step) / 127),
}
/** Weights of the float graph: the values that the int8 ones represent. */
const wide = { ...weights, w: weights.w.map((value, i) => value * at(weights['w.steps'], Math.floor(i / dims.k))) }
const norms = (): readonly Numbers[] =>
  rowsOf(given.x, dims.k).map((row) => {
    const inverse = 1 / Math.sqrt(row.reduce((sum, value) => sum + value ** 2, 0) / dims.k + 1e-5)
    return row.map((value, c) => value * inverse * at(weights.gamma, c))
  })
const expected = (): Numbers => product(norms(), weights.w, weights['w.steps']).map((value, i) => value + at(given.r, i))
const run = (asked: Graph, from = weights, inputs: Readonly<Record<string, Numbers>> = given): ArrayLike<number> =>
  runGraph(asked, ops, inputs, dims, {}, from).last ?? []

describe('rows quantised where they are produced', () => {
  it('are multiplied as integers, with the scale of the row and that of the channel', () => {
    const graphOf = prepared(normed, { dynamic: ['norm'] })
    close(run(graphOf), expected())
    expect(graphOf.attrs).toEqual([])
    expect(graphOf.steps).toEqual({ 'w.steps': { weight: 'w' } })
    // A row of zeros has step 0 and stays zeros: nothing is divided by its magnitude.
    const row = Array.from(run(graphOf)).slice(zeroRow * dims.n, (zeroRow + 1) * dims.n)
    close(row, given.r.slice(zeroRow * dims.n, (zeroRow + 1) * dims.n))
    // The result is that of floats to within half a step per element.
    const exact = run(normed.graph, wide)
    for (const [i, value] of expected().entries()) expect(Math.abs(value - at(exact, i))).toBeLessThan(0.2)
  })

  it('keep NaN', () => {
    const x = given.x.map((value, i) => (i === 0 ? Number.NaN : value))
    const found = Array.from(run(prepared(normed, { dynamic: ['norm'] }), weights, { ...given, x }))
    expect(found.slice(0, dims.n).every(Number.isNaN)).toBe(true)
    expect(found.slice(dims.n).some(Number.isNaN)).toBe(false)
  })

  const dequantising = (graphOf: Graph): NodeOf<'op'> => {
    const node = graphOf.nodes.find((each) => each.name === 'sums.float')
    if (node?.kind !== 'op') throw new Error('there is no step behind the product')
    return node
  }
  it.each([
    ['a step for all rows', (inputs: Record<string, number>) => ({ ...inputs, steps: inputs.channels ?? -1 })],
    [
      'steps on the other axis',
      (inputs: Record<string, number>) => ({ ...inputs, steps: inputs.channels ?? -1, channels: inputs.steps ?? -1 }),
    ],
  ] as const)('%s: the comparison can fail', (_, change) => {
    const right = prepared(normed, { dynamic: ['norm'] })
    const node = dequantising(right)
    const wrong = { ...node, inputs: change({ ...node.inputs }) }
    const nodes = right.nodes.map((each) => (each === node ? wrong : each))
    expect(() => close(run({ ...right, nodes }), expected())).toThrow()
  })

  it('fuse with their producer, and with the readers of the matmul', () => {
    const groups = [
      { kernel: 'norm_quantize', occurrences: [['norm', 'norm.int8']] },
      { kernel: 'product_residual', occurrences: [['sums', 'sums.float', 'added']] },
    ]
    const { graph: grouped, kernels, templates } = applyPlan(normed.graph, decl(normed, { dynamic: ['norm'] }, groups), ops)
    expect(grouped.nodes.map(({ kind }) => kind)).toEqual(['op', 'op'])
    const all = new Map<string, PlannedKernel>([...ops, ...kernels, ...templates])
    close(runGraph(grouped, all, given, dims, {}, weights).last ?? [], expected())
  })
})

describe('scales of rows move with their rows', () => {
  const heads = made('heads', { x: tensor('T', 'm h d') }, { w: tensor('T', 'n h*d') }, (g, x) => {
    const doubled = g.apply(add, { x: g.view(of(x, 'x'), 'm h*d'), y: g.view(of(x, 'x'), 'm h*d') }).z
    const seen = g.view(g.view(doubled, 'm h d'), 'm h*d')
    return { doubled, sums: g.matmul(linear, seen, of(x, 'w')) }
  })
  const packed = made(
    'packed',
    { x: tensor('T', 'b s k'), sequences: tensor('i32', 't'), positions: tensor('i32', 't') },
    { w: tensor('T', 'n k') },
    (g, x) => {
      const rows = g.view(of(x, 'x'), 'b*s k')
      const doubled = g.apply(add, { x: rows, y: rows }).z
      const where = { sequences: of(x, 'sequences'), positions: of(x, 'positions') }
      const moved = g.apply(packRows, { x: g.view(doubled, 'b s k'), ...where }).y
      return { doubled, moved, sums: g.matmul('t k, n k -> t n', moved, of(x, 'w')) }
    },
  )
  const batched = made('batched', { x: tensor('T', 'b s k') }, { w: tensor('T', 'n k') }, (g, x) => {
    return { sums: g.matmul('b s k, n k -> b s n', of(x, 'x'), of(x, 'w')) }
  })
  const w = weights.w
  const steps = { w, 'w.steps': weights['w.steps'] }

  it('through views that keep rows', () => {
    const x = floats('heads', dims.m * dims.h * dims.d)
    const found = run(prepared(heads, { dynamic: ['doubled'] }), { ...weights, ...steps }, { x })
    close(
      found,
      product(
        rowsOf(
          x.map((value) => 2 * value),
          dims.k,
        ),
        w,
        weights['w.steps'],
      ),
    )
  })

  it('through a node that moves rows', () => {
    const x = floats('packed', dims.b * dims.s * dims.k)
    const inputs = { x, sequences: [0, 0, 1, -1], positions: [0, 2, 1, 0] }
    const rows = rowsOf(
      x.map((value) => 2 * value),
      dims.k,
    )
    const zeros = Array.from({ length: dims.k }, () => 0)
    const places = [0, 2, dims.s + 1].map((place) => rows[place] ?? [])
    const found = run(prepared(packed, { dynamic: ['doubled'] }), { ...weights, ...steps }, inputs)
    close(found, product([...places, zeros], w, weights['w.steps']))
  })

  it('of an input with several axes of rows', () => {
    const x = floats('batched', dims.b * dims.s * dims.k)
    const found = run(prepared(batched, { dynamic: ['x'] }), { ...weights, ...steps }, { x })
    close(found, product(rowsOf(x, dims.k), w, weights['w.steps']))
  })
})

describe('weight-only int8', () => {
  it('is scaled after the matmul, which is summed in float32', () => {
    const graphOf = prepared(normed, { weightOnly: ['sums'] })
    const sums = graphOf.nodes.find(({ name }) => name === 'sums')
    expect(sums?.kind === 'matmul' && graphOf.values[sums.out]?.dtype).toBe('f32')
    const exact = run(normed.graph, wide)
    close(run(graphOf), Array.from(exact))
    const halved = { ...weights, 'w.steps': weights['w.steps'].map((step) => step / 2) }
    expect(() => close(run(graphOf, halved), Array.from(exact))).toThrow()
  })
})

describe('ops that depend on magnitudes, or on two tensors, are computed in floats', () => {
  const shrunk = made('shrunk', { x: tensor('T', 'm k') }, { w: tensor('T', 'n k') }, (g, x) => {
    const large = g.apply(shrink, { x: of(x, 'x') }).y
    return { large, sums: g.matmul(linear, large, of(x, 'w')) }
  })
  const either = made(
    'either',
    { x: tensor('T', 'm k'), z: tensor('T', 'm k'), flags: tensor('i32', 'm') },
    { w: tensor('T', 'n k') },
    (g, x) => {
      const rows = g.apply(eitherRow, { x: of(x, 'x'), z: of(x, 'z'), flags: of(x, 'flags') }).y
      return { rows, sums: g.matmul(linear, rows, of(x, 'w')) }
    },
  )
  const flagged = { x: tensor('T', 'm k'), flags: tensor('i32', 'm') }
  const numbered = made('numbered', flagged, { w: tensor('T', 'n k') }, (g, x) => {
    const rows = g.apply(orOne, { x: of(x, 'x'), flags: of(x, 'flags') }).y
    return { rows, sums: g.matmul(linear, rows, of(x, 'w')) }
  })
  const beside = made('beside', { ...flagged, z: tensor('f32', 'm k') }, { w: tensor('T', 'n k') }, (g, x) => {
    const rows = g.apply(orFloat, { x: of(x, 'x'), z: of(x, 'z'), flags: of(x, 'flags') }).y
    return { rows, sums: g.matmul(linear, rows, of(x, 'w')) }
  })

  it.each([
    ['elements or a number', numbered, { values: ['x'] }],
    ['elements or floats of another tensor', beside, { values: ['x'] }],
    ['elements that are stored where they are large', shrunk, { values: ['x'] }],
    ['the same of rows', shrunk, { dynamic: ['x'] }],
    ['rows of one tensor or of another', either, { values: ['x', 'z'] }],
    ['the same with a step for each row', either, { dynamic: ['x', 'z'] }],
  ] as const)('%s', (_, graphOf, asked) => {
    const { nodes, values } = prepared(graphOf, asked)
    const product = nodes.find((node) => node.kind === 'matmul')
    expect([product?.a, product?.b].map((id) => values[id ?? -1]?.dtype)).toEqual([{ param: 'T' }, { param: 'T' }])
  })
})

it('a matmul of floats without stored operands stays one, next to a matmul of integers', () => {
  const inputs = { x: tensor('T', 'm k'), z: tensor('f32', 'm k') }
  const foreign = made('foreign', inputs, { w: tensor('T', 'n k'), u: tensor('f32', 'n k') }, (g, x) => {
    const rows = g.apply(wholeFloats, { z: of(x, 'z') }).y
    return { rows, floats: g.matmul(linear, rows, of(x, 'u')), sums: g.matmul(linear, of(x, 'x'), of(x, 'w')) }
  })
  const { nodes, values } = prepared(foreign, { values: ['x'] })
  const types = nodes.flatMap((node) =>
    node.kind === 'matmul' ? [[node.name, values[node.a]?.dtype, values[node.b]?.dtype]] : [],
  )
  expect(types).toEqual([
    ['floats', 'f32', 'f32'],
    ['sums', 'i8', 'i8'],
  ])
})

describe('values that do not fit the scales are refused', () => {
  const regrouped = made('regrouped', { x: tensor('T', 'm h*d') }, { w: tensor('T', 'n d'), u: tensor('T', 'n h*d') }, (g, x) => {
    const doubled = g.apply(add, { x: of(x, 'x'), y: of(x, 'x') }).z
    const first = g.matmul(linear, doubled, of(x, 'u'))
    return { doubled, first, sums: g.matmul(linear, g.view(doubled, 'm*h d'), of(x, 'w')) }
  })
  const turned = made('turned', { x: tensor('T', 'k m') }, { w: tensor('T', 'n k') }, (g, x) => ({
    sums: g.matmul('k m, n k -> m n', of(x, 'x'), of(x, 'w')),
  }))
  const columns = made('columns', { x: tensor('T', 'm k') }, { w: tensor('T', 'k n') }, (g, x) => ({
    sums: g.matmul('m k, k n -> m n', of(x, 'x'), of(x, 'w')),
  }))
  const scores = made('scores', { x: tensor('T', 'm k'), y: tensor('T', 'n k') }, {}, (g, x) => ({
    sums: g.matmul(linear, of(x, 'x'), of(x, 'y')),
  }))
  const tied = made('tied', { ids: tensor('i32', 'm') }, { w: tensor('T', 'v k') }, (g, x) => {
    const words = g.apply(wordLookup, { ids: of(x, 'ids'), table: of(x, 'w') }).y
    return { words, sums: g.matmul('m k, v k -> m v', words, of(x, 'w')) }
  })
  const merged = made('merged', { x: tensor('T', 'b s h d', headsLayout) }, { w: tensor('T', 'n h*d') }, (g, x) => {
    const rows = g.apply(mergeHeads, { x: of(x, 'x') }).y
    return { rows, sums: g.matmul(linear, g.view(rows, 'b*s h*d'), of(x, 'w')) }
  })
  it.each([
    ['a view that regroups rows', regrouped, { dynamic: ['doubled'] }, 'regroups rows, which have a scale each'],
    ['rows that are summed over', turned, { dynamic: ['x'] }, 'its rows are not those that have a scale each'],
    ['a weight whose rows are summed over', columns, { dynamic: ['x'] }, 'rows of w have a scale each'],
    ['the same of a weight alone', columns, { weightOnly: ['sums'] }, 'rows of w have a scale each'],
    ['two activations', scores, { dynamic: ['x', 'y'] }, 'multiplies two activations'],
    ['one of them with one scale', scores, { values: ['x'], dynamic: ['y'] }, 'rows of y have scales of their own'],
    ['a weight that is read as floats as well', tied, { dynamic: ['words'] }, 'words reads it as floats'],
    ['the same of a weight alone', tied, { weightOnly: ['sums'] }, 'words reads it as floats'],
    ['heads that are merged behind', merged, { dynamic: ['x'] }, 'scale each'],
    ['a value that has one scale as well', normed, { dynamic: ['norm'], values: ['norm'] }, 'both one scale and a scale per row'],
    ['a weight alone of a node that is not a matmul', normed, { weightOnly: ['norm'] }, 'is not a matmul'],
    ['a weight alone of a product of activations', scores, { weightOnly: ['sums'] }, 'does not multiply a value by a weight'],
    ['a weight alone where both are int8', normed, { dynamic: ['norm'], weightOnly: ['sums'] }, 'takes both as int8'],
    ['a name the graph lacks', normed, { dynamic: ['nrom'] }, 'has no node or input nrom'],
  ] as const)('%s', (_, graphOf, asked, words) => {
    const error = refusal(() => prepared(graphOf, asked))
    expect(error.code).toBe('plan.quantised')
    expect(error.message).toContain(words)
  })
})

describe('a weight alone as int8, in no group', () => {
  const planned = (groups: PlanDecl['groups'], asked: Partial<QuantisedDecl> = { weightOnly: ['sums'] }) =>
    planAll([decl(normed, asked, groups)], { [normed.name]: normed }, [...ops.values()])

  it.each([
    ['of its own', []],
    ['of both nodes', [{ kernel: 'scaled', occurrences: [['sums.float']] }]],
  ] as const)('%s, is refused when kernels are generated', (_, groups) => {
    const error = refusal(() => planned(groups))
    expect(error.code).toBe('plan.quantised')
    expect(error.message).toContain('sums is to take its weight as int8: expected a group with sums and sums.float, got none')
    expect(error.hint).toContain("groups: { sums_int8: ['sums', 'sums.float'] }")
    expect(error.about).toMatchObject({ nodes: ['sums'] })
  })

  it('is generated by the group of the hint, and integers of both sides need none', () => {
    expect(planned([{ kernel: 'sums_int8', occurrences: [['sums', 'sums.float']] }]).templates).toHaveLength(1)
    expect(planned([], { dynamic: ['norm'] }).templates).toHaveLength(0)
  })
})
