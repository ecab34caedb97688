/**
 * Quantised plans compute the same as their ungrouped graphs: every INT8 plan with random scales, packed and unpacked, with integers on every
 * integer edge; and refusals that name the value and the reason.
 */
import { graph, plan, tensor } from 'heddle'
import { beforeAll, describe, expect, it } from 'vitest'
import { encoderLayerGelu } from '../../specs/graphs/encoder_layer.js'
import { graphs, plans } from '../../specs/index.js'
import { col32 } from '../../specs/layouts/matrix.js'
import { splitHeads } from '../../specs/layouts/split_heads.js'
import { gelu } from '../../specs/ops/activations.js'
import { add } from '../../specs/ops/add.js'
import { mergeHeads } from '../../specs/ops/merge_heads.js'
import { HeddleError } from '../../src/errors.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { applyPlan } from '../../src/fuse/apply.js'
import type { LayoutsByName } from '../../src/fuse/graph/edit.js'
import { prepareGraph } from '../../src/fuse/passes.js'
import type { PlannedKernel } from '../../src/fuse/planned_kernel.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Graph, ValueId } from '../../src/ir/graph.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { parseExtent } from '../../src/ir/shape.js'
import type { PlanDecl } from '../../src/lang/plan.js'
import { placingGraph } from '../../src/program/conversions.js'
import { integer, random, uniform } from '../../src/verify/random.js'
import { exactly, reordered } from './compare.js'
import { runGraph, runValues, shapeOf } from './host.js'
import { dims, lengths, pack, tokens } from './tokens.js'

type Values = Readonly<Record<string, ArrayLike<number>>>

let ops: ReadonlyMap<string, Kernel>
let layouts: LayoutsByName
let packed: Values
beforeAll(() => {
  const specs = readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] })
  ops = new Map(specs.kernels.map((kernel) => [kernel.name, kernel]))
  layouts = new Map(specs.layouts.map((layout) => [layout.name, layout]))
  const axis = { batch: parseExtent('b'), seq: parseExtent('s'), tokens: 't', lengths: 0 }
  packed = { lengths, ...runGraph(placingGraph(axis).graph, ops, { lengths }, dims, {}) }
})

/** Plans whose scales are attributes; quantise_rows.test.ts covers per-row scales. */
const quantised = plans.filter(({ quantised: asked }) => asked !== undefined && asked.values.length > 0)
const originalOf = ({ graph: name }: PlanDecl): Graph => {
  const found = graphs[name]?.graph
  if (found === undefined) throw new Error(`no graph ${name}`)
  return found
}
const find = (name: string): PlanDecl => {
  const found = quantised.find((each) => each.name === name)
  if (found === undefined) throw new Error(`no quantised plan ${name}`)
  return found
}

/** Attributes of a graph: a largest magnitude for every site, and the model's own. */
function attrsOf({ attrs }: Graph, seed: string): Record<string, number> {
  const amax = (site: string): number => uniform(random(`${seed} ${site}`), 0.5, 4)
  const value = (name: string): number => {
    const [site = '', kind] = [name.slice(0, name.lastIndexOf('.')), name.split('.').at(-1)]
    return kind === 'inverse' ? 127 / amax(site) : kind === 'step' ? amax(site) / 127 : name === 'eps' ? 1e-6 : 0.5
  }
  return Object.fromEntries(attrs.map((name) => [name, value(name)]))
}

/** Weights and padded inputs of a prepared graph by name. Weights are scaled so that results are about 1. */
function dataOf(prepared: Graph, named: Readonly<Record<string, ValueId>>, seed: string): Values {
  return Object.fromEntries(
    Object.entries(named).map(([name, id]) => {
      const next = random(`${seed} ${name}`)
      const shape = shapeOf(prepared, id, { ...dims, t: dims.b * dims.s })
      const length = shape.reduce((product, extent) => product * extent, 1)
      const { dtype } = prepared.values[id] ?? {}
      const ids: Readonly<Record<string, number>> = { ids: dims.v, typeIds: dims.u }
      const draw = (): number => {
        if (dtype === 'i8') return integer(next, -127, 127)
        if (dtype === 'i32') return integer(next, 0, (ids[name] ?? 1) - 1)
        return prepared.steps?.[name] === undefined ? uniform(next, -1, 1) : uniform(next, 0.001, 0.005)
      }
      return [name, name === 'lengths' ? lengths : Float64Array.from({ length }, draw)]
    }),
  )
}

interface Ran {
  readonly values: ReadonlyMap<ValueId, ArrayLike<number>>
  readonly outputs: Values
}

/** Runs a prepared or grouped graph on the data of the prepared one. */
function run(made: Graph, prepared: Graph, kernels: ReadonlyMap<string, PlannedKernel>, seed: string): Ran {
  const isPacked = prepared.inputs.starts !== undefined || prepared.inputs.sequences !== undefined
  const inputs = Object.fromEntries(
    Object.entries(dataOf(prepared, prepared.inputs, seed)).map(([name, padded]) => {
      const first = prepared.values[prepared.inputs[name] ?? -1]?.shape[0]
      return [name, (isPacked ? packed[name] : undefined) ?? (first?.dims.join() === 't' ? pack(padded, dims.t) : padded)]
    }),
  )
  const weights = dataOf(prepared, prepared.weights, seed)
  const values = runValues(made, kernels, inputs, dims, attrsOf(prepared, seed), weights)
  const outputs = Object.fromEntries(Object.entries(made.outputs).map(([name, id]) => [name, values.get(id) ?? []]))
  return { values, outputs }
}

/** The ungrouped graph and the grouped one of a plan, run on the same data. `change` may replace derived kernels. */
function both(decl: PlanDecl, seed: string, change: (kernel: Kernel) => Kernel = (kernel) => kernel) {
  const original = originalOf(decl)
  const prepared = prepareGraph(original, decl, ops, layouts)
  const grouped = applyPlan(original, decl, ops, layouts)
  const kernels = new Map<string, PlannedKernel>([...ops, ...grouped.templates])
  for (const [name, kernel] of grouped.kernels) kernels.set(name, change(kernel))
  return {
    ungrouped: { graph: prepared, ...run(prepared, prepared, ops, seed) },
    grouped: { graph: grouped.graph, ...run(grouped.graph, prepared, kernels, seed) },
  }
}

/** Attention in a kernel sums in another order, and does not touch rows without a token. */
const isReordered = (decl: PlanDecl): boolean => decl.groups.some(({ kernel }) => kernel.startsWith('attention'))

function expectSame(decl: PlanDecl, { ungrouped, grouped }: ReturnType<typeof both>): void {
  expect(Object.keys(grouped.outputs)).toEqual(Object.keys(ungrouped.outputs))
  for (const [name, expected] of Object.entries(ungrouped.outputs)) {
    const rows = isReordered(decl) ? (expected.length / dims.t) * tokens : expected.length
    const [a, b] = [grouped.outputs[name] ?? [], expected].map((values) => Array.from(values))
    ;(isReordered(decl) ? reordered : exactly)((a ?? []).slice(0, rows), (b ?? []).slice(0, rows))
  }
}

/** The values of a run that are stored as integers, with their contents. */
const integersOf = ({ graph: { values: declared }, values }: { readonly graph: Graph } & Ran, dtype: 'i8' | 'i32') =>
  [...values].flatMap(([id, data]) => (declared[id]?.dtype === dtype ? [Array.from(data)] : []))

function expectIntegers(ran: { readonly graph: Graph } & Ran): void {
  for (const values of [...integersOf(ran, 'i8'), ...integersOf(ran, 'i32')]) expect(values.every(Number.isInteger)).toBe(true)
  for (const values of integersOf(ran, 'i8')) expect(values.every((value) => value >= -127 && value <= 127)).toBe(true)
}

/** A kernel whose results are not rounded, or are rounded down. */
function rounded(kernel: Kernel, as: 'not' | 'down'): Kernel {
  const strip = (expr: Expr): Expr => {
    if (expr.kind !== 'call') return expr
    const args = expr.args.map(strip)
    if (expr.fn !== 'round') return { ...expr, args }
    return as === 'down' ? { ...expr, fn: 'floor', args } : (args[0] ?? expr)
  }
  return { ...kernel, body: kernel.body.map((stmt) => (stmt.kind === 'storeRow' ? { ...stmt, value: strip(stmt.value) } : stmt)) }
}

describe.each(quantised.map((decl) => [`${decl.name} of ${decl.graph}`, decl] as const))('%s', (_, decl) => {
  it.each(['one', 'two', 'three'])('grouped equals ungrouped at random scales %s, with integers where it says so', (seed) => {
    const { ungrouped, grouped } = both(decl, seed)
    expectSame(decl, { ungrouped, grouped })
    expectIntegers(ungrouped)
    expectIntegers(grouped)
    // With these scales, int8 edges have many different integers.
    const distinct = integersOf(ungrouped, 'i8').map((values) => new Set(values).size)
    expect(Math.max(...distinct)).toBeGreaterThan(20)
  })
})

describe('planted mistakes are noticed', () => {
  const decl = find('ft-v3-mode2')

  it('a kernel that rounds down, but not one that leaves rounding to its store', () => {
    const as = (way: 'not' | 'down') =>
      both(decl, 'one', (kernel) => (kernel.name === 'int8_bias_gelu' ? rounded(kernel, way) : kernel))
    expect(() => expectSame(decl, as('down'))).toThrow()
    expect(() => expectSame(decl, as('not'))).not.toThrow()
  })

  it('a value that is not an integer', () => {
    const { grouped } = both(decl, 'one')
    const halves = new Map([...grouped.values].map(([id, data]) => [id, Array.from(data, (value) => value / 2)]))
    expect(() => expectIntegers(grouped)).not.toThrow()
    expect(() => expectIntegers({ ...grouped, values: halves })).toThrow()
  })

  it('a scale taken for another', () => {
    const { ungrouped, grouped } = both(decl, 'one')
    const original = originalOf(decl)
    const { graph: made, kernels, templates } = applyPlan(original, decl, ops, layouts)
    const nodes = made.nodes.map((node) =>
      node.kind === 'op' && node.op === 'int8_softmax'
        ? { ...node, attrs: { ...node.attrs, inverse: { attr: 'x.inverse' } } }
        : node,
    )
    const all = new Map<string, PlannedKernel>([...ops, ...kernels, ...templates])
    const wrong = run({ ...made, nodes }, ungrouped.graph, all, 'one')
    expect(() => expectSame(decl, { ungrouped, grouped: { ...grouped, ...wrong } })).toThrow()
  })
})

it.each(['ft-v3-mode1', 'ft-v3-mode2', 'ft-v3-mode1-2r4r4', 'ft-v3-mode2-2r4r4'])(
  '%s packed equals unpacked on tokens',
  (name) => {
    const [padded, rows] = [find(name), find(`${name}-packed`)].map((decl) => both(decl, 'one').grouped.outputs)
    for (const [output, expected] of Object.entries(padded ?? {})) {
      const held = (expected.length / (dims.b * dims.s)) * tokens
      exactly(Array.from(rows?.[output] ?? []).slice(0, held), Array.from(pack(expected, dims.t)).slice(0, held))
    }
  },
)

describe('quantised values of a plan', () => {
  const decl = (
    values: readonly string[],
    rest: Partial<PlanDecl> = {},
    kept: Partial<PlanDecl['quantised'] & object> = {},
  ): PlanDecl => ({
    name: 'test',
    graph: encoderLayerGelu.name,
    groups: [],
    quantised: { values, dynamic: [], weightOnly: [], only: [], across: [], weights: 'row', ...kept },
    ...rest,
  })
  const groupsOf = (...groups: readonly (readonly string[])[]): Partial<PlanDecl> => ({
    groups: groups.map((nodes, i) => ({ kernel: `group${i}`, occurrences: [nodes] })),
  })

  function refusal(asked: PlanDecl, original: Graph = encoderLayerGelu.graph): HeddleError {
    try {
      applyPlan(original, asked, ops, layouts)
    } catch (error) {
      if (error instanceof HeddleError) return error
      throw error
    }
    throw new Error('the plan was accepted')
  }

  it('makes only those matmuls integer whose operands all are', () => {
    const { nodes, values } = prepareGraph(encoderLayerGelu.graph, decl(['x', 'queryBias', 'fc1Activation']), ops, layouts)
    const integer = nodes.flatMap((node) => (node.kind === 'matmul' && values[node.out]?.dtype === 'i32' ? [node.name] : []))
    expect(integer).toEqual(['query', 'key', 'value', 'fc2'])
  })

  it('passes weights with the scales of their rows, and attributes of each site', () => {
    const prepared = prepareGraph(encoderLayerGelu.graph, decl(['x'], {}, { weights: 'col32' }), ops, layouts)
    expect(prepared.steps).toEqual({
      'queryWeight.steps': { weight: 'queryWeight', times: 'x.step' },
      'keyWeight.steps': { weight: 'keyWeight', times: 'x.step' },
      'valueWeight.steps': { weight: 'valueWeight', times: 'x.step' },
    })
    expect(prepared.values[prepared.weights.queryWeight ?? -1]).toMatchObject({ dtype: 'i8', layout: 'col32' })
    expect(prepared.values[prepared.weights.fc1Weight ?? -1]).toMatchObject({ dtype: { param: 'T' }, layout: 'row' })
    expect([...prepared.attrs].sort()).toEqual(['eps', 'scale', 'x.inverse', 'x.step'])
  })

  it('dequantises a matmul of two activations by the scales of both', () => {
    const { nodes } = prepareGraph(encoderLayerGelu.graph, decl(['queryBias', 'keyBias']), ops, layouts)
    expect(nodes.find(({ name }) => name === 'scores.float')).toMatchObject({
      attrs: { step: { attr: 'queryBias.step' }, otherStep: { attr: 'keyBias.step' } },
    })
  })

  it('refuses a matmul whose first operand is a weight', () => {
    const turned = graph('turned', {
      inputs: { x: tensor('T', 'm k') },
      weights: { w: tensor('T', 'n k') },
      build: (g, { x }, { w }) => {
        const product = g.matmul('n k, m k -> n m', w, x)
        return { nodes: { product }, outputs: { product } }
      },
    })
    const error = refusal({ ...plan('p', turned, { groups: {} }), quantised: decl(['x']).quantised } as PlanDecl, turned.graph)
    expect([error.code, error.message]).toEqual(['plan.quantised', 'plan p: matmul product has a weight as its first operand'])
  })

  it('refuses a name the graph lacks', () => {
    const error = refusal(decl(['fc1Activaton']))
    expect(error.code).toBe('plan.quantised')
    expect(error.message).toContain('has no node or input fc1Activaton')
    const nodes = encoderLayerGelu.graph.nodes.filter(({ kind }) => kind !== 'view').map(({ name }) => name)
    expect(error.hint).toBe(`nodes: ${nodes.join(', ')}`)
  })

  it.each(['only', 'across'])('refuses %s of a value that it does not quantise', (kept) => {
    const error = refusal(decl(['x'], {}, { [kept]: ['x', 'fc1Activation'] }))
    expect(error).toMatchObject({ code: 'plan.quantised', hint: 'quantised: x' })
    expect(error.message).toContain('fc1Activation')
  })

  /** One weight multiplies two values, or one value twice. */
  const twice = (first: string, second: string) =>
    graph(`${first}_and_${second}`, {
      inputs: { one: tensor('T', 'm n'), other: tensor('T', 'm n') },
      weights: { w: tensor('T', 'n n') },
      build: (g, inputs, { w }) => {
        const of = (name: string) => g.matmul('m k, n k -> m n', name === 'one' ? inputs.one : inputs.other, w)
        const [left, right] = [of(first), of(second)]
        const sum = g.apply(add, { x: left, y: right }).z
        return { nodes: { left, right, sum }, outputs: { sum } }
      },
    })

  it('gives a weight one scale for all matmuls with one value, and refuses another', () => {
    const asked = { ...decl(['one', 'other']), graph: 'twice' }
    const same = prepareGraph(twice('one', 'one').graph, asked, ops, layouts)
    expect(same.steps).toEqual({ 'w.steps': { weight: 'w', times: 'one.step' } })
    const error = refusal(asked, twice('one', 'other').graph)
    expect(error).toMatchObject({ code: 'plan.quantised', hint: 'multiply a weight by one quantised value only' })
    expect(error.message).toContain('right multiplies w by a value of another scale than before')
  })

  /** The result of `merged` is multiplied, and is also added in another shape (`sum`) or returned (`result`). */
  const shared = (other: 'sum' | 'none' | 'result') =>
    graph(`moved_and_${other}`, {
      inputs: { x: tensor('T', 'b s h d', splitHeads) },
      weights: { w: tensor('T', 'h*d h*d') },
      build: (g, { x }, { w }) => {
        const merged = g.apply(mergeHeads, { x }).y
        const rows = g.view(merged, 'b*s h*d')
        const product = g.matmul('m k, n k -> m n', rows, w)
        const last = other === 'sum' ? g.apply(add, { x: product, y: rows }).z : g.apply(gelu, { x: product }).y
        return { nodes: { merged, product, last }, outputs: { last: other === 'result' ? merged : last } }
      },
    })

  it.each([
    ['sum', 'merged moves int8, but last reads it as floats'],
    ['result', 'merged moves int8, but the caller of the graph reads it as floats'],
  ] as const)('refuses a value that moves as int8 and is read as floats: %s', (other, words) => {
    const made = shared(other)
    const asked = { ...decl(['x']), graph: made.name }
    const error = refusal(asked, made.graph)
    expect(error).toMatchObject({ code: 'plan.quantised', hint: 'quantise merged instead of its input' })
    expect(error.message).toContain(words)
    expect(() => applyPlan(made.graph, { ...asked, quantised: decl(['merged']).quantised }, ops, layouts)).not.toThrow()
    expect(() => applyPlan(shared('none').graph, asked, ops, layouts)).not.toThrow()
  })

  it.each([
    ['an unknown layout', 'fc1', 'fc1_layout', ['fc1', 'fc1Bias'], 'unknown layout fc1_layout'],
    ['a layout of another rank', 'fc1', 'heads_col32', ['fc1', 'fc1Bias'], 'it has axes b s h d'],
    ['an end that is in no group', 'fc1Activation.int8', 'col32', [], 'fc1Activation.int8 is in no group'],
    ['an unknown node', 'fc3', 'col32', [], 'fc3'],
  ] as const)('refuses edges with %s', (_, node, layout, group, words) => {
    const groups = group.length === 0 ? groupsOf() : groupsOf(['fc1', 'fc1.float', 'fc1Bias'])
    const error = refusal(decl(['attentionNorm', 'fc1Activation'], { ...groups, edges: [{ node, layout }] }))
    expect(error.code).toMatch(/^plan\.(edge|node)$/)
    expect(error.message).toContain(words)
  })

  it('accepts a layout if both ends are in groups', () => {
    const asked = decl(['attentionNorm'], {
      ...groupsOf(['fc1'], ['fc1.float', 'fc1Bias']),
      edges: [{ node: 'fc1', layout: 'col32' }],
    })
    const { templates, kernels } = applyPlan(encoderLayerGelu.graph, asked, ops, layouts)
    expect(templates.get('group0')?.tensors.at(-1)?.layout.name).toBe('col32')
    expect(kernels.get('group1')?.tensors[0]?.layout.name).toBe('col32')
  })

  it('accepts a batch of integer matmuls, alone and with an epilogue', () => {
    const heads = ['queryBias', 'keyBias']
    for (const group of [['scores'], ['scores', 'scores.float']]) {
      const kernel = applyPlan(encoderLayerGelu.graph, decl(heads, groupsOf(group)), ops, layouts).templates.get('group0')
      if (kernel?.kind !== 'matmul') throw new Error('no matmul kernel')
      expect(kernel.batch).toHaveLength(2)
      // Sums that stay integers use the whole range of int8; float operands are small.
      const whole = { from: [-127], to: [127] }
      expect(kernel.facts?.inputs).toEqual(group.length === 1 ? { a: whole, b: whole } : {})
      expect(kernel.tensors.at(-1)?.dims).toEqual([...kernel.batch, kernel.m, kernel.n])
    }
  })

  it('is checked by the compiler', () => {
    const asked = [
      plan('typed', encoderLayerGelu, {
        quantised: { values: ['x', 'merged', 'fc1Activation'], only: ['x'], weights: col32 },
        edges: { 'merged.int8': { layout: col32 }, x: { layout: col32 } },
        groups: { made: ['fc1', 'fc1.float', 'x.float'] },
      }),
      // @ts-expect-error no node or input of that name
      plan('typed', encoderLayerGelu, { quantised: { values: ['fc1Activaton'] }, groups: {} }),
      // @ts-expect-error kept as int8, but no value of the graph
      plan('typed', encoderLayerGelu, { quantised: { values: ['x'], only: ['y'] }, groups: {} }),
      // @ts-expect-error a step there is not
      plan('typed', encoderLayerGelu, { quantised: { values: ['x'] }, groups: { made: ['x.int4'] } }),
      // @ts-expect-error a misspelt step among right ones
      plan('typed', encoderLayerGelu, { quantised: { values: ['x'] }, groups: { made: ['fc1', 'fc1.flaot'] } }),
      // @ts-expect-error an edge of no node
      plan('typed', encoderLayerGelu, { quantised: { values: ['x'] }, edges: { 'fc3.int8': { layout: col32 } }, groups: {} }),
    ]
    expect(asked).toHaveLength(6)
  })
})
