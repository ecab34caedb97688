/**
 * Every INT8 plan's layer on the CPU device against the written-out reference of the same quantisation, edge by edge: each edge is
 * computed from the device's own edges before it. int32 edges and int8 edges without a function before them are equal, the others
 * are within one step.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import { encoderLayers } from '../../specs/graphs/encoder_layers.js'
import { layouts, plans } from '../../specs/index.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { aliasesOf } from '../../src/fuse/graph/edit.js'
import { prepareGraph } from '../../src/fuse/passes.js'
import { erf } from '../../src/ir/erf.js'
import { type Graph, type GraphValue, outputsOf } from '../../src/ir/graph.js'
import { stepOf, stepsPerUnit } from '../../src/ir/int8_scale.js'
import { decode } from '../../src/runtime/buffer.js'
import { findLayout, layoutSize } from '../../src/runtime/layouts.js'
import { prepareWeights } from '../../src/runtime/prepare_weights.js'
import { buildProgram } from '../../src/runtime/program.js'
import { quantiseWeights } from '../../src/runtime/quantise_weights.js'
import { openSession } from '../../src/runtime/session.js'
import { encodeNumbers } from '../../src/verify/storage.js'
import { root } from '../conformance/simt.js'
import { inTurn } from '../turns.js'
import { noise } from './fixtures.js'
import * as reference from './int8_reference.js'
import { openSimtKernels } from './simt.js'

const heads: reference.Heads = { batch: 3, seq: 33, heads: 2, headDim: 64, lengths: [33, 1, 20] }
const [hidden, inner] = [heads.heads * heads.headDim, 96]
const tokens = heads.lengths.reduce((a, b) => a + b, 0) + 2
const dims = { b: heads.batch, s: heads.seq, h: heads.heads, d: heads.headDim, i: inner, t: tokens }
const amax: Readonly<Record<string, number>> = {
  x: 3.1,
  queryBias: 2.3,
  keyBias: 2.7,
  valueBias: 1.9,
  probabilities: 0.8,
  merged: 0.9,
  attentionNorm: 3.3,
  fc1Activation: 1.7,
  outputNorm: 2.9,
}
const [eps, factor] = [1e-12, 0.125]

const next = noise(7)
const draw = (length: number, spread: number, centre = 0): Float32Array =>
  Float32Array.from({ length }, () => centre + spread * (next() + next()))
const sizes: Readonly<Record<string, readonly number[]>> = {
  ...Object.fromEntries(['query', 'key', 'value', 'projection'].map((name) => [`${name}Weight`, [hidden, hidden]])),
  ...Object.fromEntries(['query', 'key', 'value', 'projection', 'fc2'].map((name) => [`${name}Bias`, [hidden]])),
  ...Object.fromEntries(
    ['attention', 'output'].flatMap((name) => [`${name}Gamma`, `${name}Beta`].map((weight) => [weight, [hidden]])),
  ),
  fc1Weight: [inner, hidden],
  fc1Bias: [inner],
  fc2Weight: [hidden, inner],
}
const weights = Object.fromEntries(
  Object.entries(sizes).map(([name, shape]) => {
    const spread = shape.length === 2 ? 1.5 / Math.sqrt(shape[1] ?? 1) : 0.1
    const values = draw(
      shape.reduce((a, b) => a * b, 1),
      spread,
      name.endsWith('Gamma') ? 1 : 0,
    )
    return [name, { dtype: 'f32' as const, shape, values, data: new Uint8Array(values.buffer) }]
  }),
)
const weight = (name: string): Float32Array => weights[name]?.values ?? new Float32Array()
/** One channel has no weights: its step is 0. */
weight('keyWeight').fill(0, 5 * hidden, 6 * hidden)
const int8 = (name: string) =>
  quantiseWeights({ name, values: weight(name), rows: sizes[name]?.[0] ?? 0, columns: sizes[name]?.[1] ?? 0 })

const step = (site: string): number => stepOf(amax[site] ?? 0)
const inverse = (site: string): number => stepsPerUnit(amax[site] ?? 0)

const { kernels, layouts: lowered } = readSpecsOrThrow({ root, specs: ['specs'] })
const ops = new Map(kernels.map((kernel) => [kernel.name, kernel]))
const layoutIr = new Map(lowered.map((layout) => [layout.name, layout]))

let simt: Awaited<ReturnType<typeof openSimtKernels>>
/** Kernels of the last run, and products of the library. */
let launched: readonly string[] = []
beforeAll(async () => {
  simt = await openSimtKernels()
})

type Activation = keyof typeof encoderLayers.post
type Layer = (typeof encoderLayers)['post' | 'pre'][Activation]

const each = (of: (x: number) => number) => (values: ArrayLike<number>) => Float64Array.from(values, of)

/** Activations written out, in double precision. */
const activations: Readonly<Record<Activation, (values: ArrayLike<number>) => ArrayLike<number>>> = {
  gelu: (values) => reference.gelu(values, erf),
  gelu_tanh: each((x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)))),
  relu: each((x) => Math.max(x, 0)),
  silu: each((x) => x / (1 + Math.exp(-x))),
}

/** Runs the layer under a plan: the device's value of every integer edge that exists in memory, and of the inputs, by node. */
async function edgesOf(
  name: string,
  manifest = simt.manifest,
  layer: Layer = encoderLayers.post.gelu,
): Promise<ReadonlyMap<string, Float64Array>> {
  const plan = plans.find((decl) => decl.name === name && decl.graph === layer.name)
  const planned = manifest.plans?.[name]?.[layer.name]
  if (plan === undefined || planned === undefined) throw new Error(`no plan ${name} of ${layer.name}`)
  const prepared = prepareGraph(layer.graph, plan, ops, layoutIr)
  const made = new Set(planned.nodes.flatMap(outputsOf))
  const outputs = Object.fromEntries(
    prepared.nodes.flatMap((node) =>
      outputsOf(node).flatMap((id) => {
        const dtype = prepared.values[id]?.dtype
        const stored = [...aliasesOf(prepared.nodes, id)].find((alias) => made.has(alias) && hasRank(prepared.values[alias]))
        return node.kind !== 'view' && stored !== undefined && (dtype === 'i8' || dtype === 'i32')
          ? [[node.name, stored] as const]
          : []
      }),
    ),
  )
  const graph = { ...planned, outputs: { ...planned.outputs, ...outputs } }
  const given = inputsOf(graph)
  const attrs: Record<string, number> = { eps, scale: factor }
  for (const site of Object.keys(amax)) Object.assign(attrs, { [`${site}.step`]: step(site), [`${site}.inverse`]: inverse(site) })
  const names = (keys: readonly string[]) => Object.fromEntries(keys.map((key) => [key, key]))
  const application = {
    label: 'layer',
    graph,
    inputs: names(Object.keys(graph.inputs)),
    weights: names(Object.keys(sizes)),
    outputs: names(Object.keys(graph.outputs)),
    attrs,
  }
  const session = await openSession({ ...simt, manifest, layouts, weights: prepareWeights([application], weights, layouts) })
  const program = await buildProgram({
    session,
    applications: [application],
    inputs: Object.keys(given),
    outputs: Object.keys(graph.outputs),
    dims,
    types: { T: 'f32' },
  })
  const bytes = Object.entries(given).map(([input, values]) => {
    const info = program.inputs[input]
    if (info === undefined) throw new Error(`no input ${input}`)
    const layout = findLayout(layouts, info.layout, info.shape.length)
    const stored = new Float64Array(layoutSize(layout, info.shape))
    logical(info.shape, (at, i) => {
      stored[layout.offset(named(layout.axes, at), named(layout.axes, info.shape))] = values[i] ?? 0
    })
    return [input, encodeNumbers(info.dtype, stored)] as const
  })
  launched = program.steps.map(({ kernel = 'library' }) => kernel)
  const results = await program.run(Object.fromEntries(bytes))
  const edges = new Map<string, Float64Array>(Object.entries(given).map(([input, values]) => [input, Float64Array.from(values)]))
  for (const [output, info] of Object.entries(program.outputs)) {
    const layout = findLayout(layouts, info.layout, info.shape.length)
    const stored = decode(info.dtype, results[output] ?? new Uint8Array())
    const values: number[] = []
    logical(info.shape, (at) =>
      values.push(Number(stored[layout.offset(named(layout.axes, at), named(layout.axes, info.shape))])),
    )
    edges.set(output, Float64Array.from(values))
  }
  program.release()
  session.release()
  return edges
}

/** Whether a value has the rank its layout is for: one seen in a coarser shape only names it. */
const hasRank = (value: GraphValue | undefined): boolean =>
  value !== undefined && (layoutIr.get(value.layout)?.axes.length ?? value.shape.length) === value.shape.length

const named = (axes: readonly string[], values: readonly number[]) =>
  Object.fromEntries(axes.map((axis, i) => [axis, values[i] ?? 0]))

function logical(shape: readonly number[], visit: (at: readonly number[], i: number) => void): void {
  const total = shape.reduce((a, b) => a * b, 1)
  for (let i = 0; i < total; i++) {
    let rest = i
    const at = shape.toReversed().map((extent) => {
      const index = rest % extent
      rest = Math.floor(rest / extent)
      return index
    })
    visit(at.toReversed(), i)
  }
}

const floats = Float64Array.from(draw(heads.batch * heads.seq * hidden, 1.2))

/** What a planned layer takes, by the inputs it has. */
function inputsOf({ inputs, values }: Graph): Record<string, ArrayLike<number>> {
  const packed = Object.hasOwn(inputs, 'starts') || Object.hasOwn(inputs, 'sequences')
  const rowsOfX = packed ? reference.packed(floats, hidden, tokens, heads) : floats
  const x = values[inputs.x ?? -1]?.dtype === 'i8' ? reference.quantised(rowsOfX, inverse('x')) : rowsOfX
  const starts = heads.lengths.map((_, i) => heads.lengths.slice(0, i).reduce((a, b) => a + b, 0))
  const rows = Array.from({ length: tokens }, (_, t) =>
    starts.findLastIndex((start, i) => start <= t && t < start + (heads.lengths[i] ?? 0)),
  )
  const all: Record<string, ArrayLike<number>> = {
    x,
    'x.int8': reference.quantised(rowsOfX, inverse('x')),
    lengths: heads.lengths,
    starts,
    sequences: rows,
    positions: rows.map((b, t) => (b < 0 ? 0 : t - (starts[b] ?? 0))),
  }
  return Object.fromEntries(Object.keys(inputs).map((name) => [name, all[name] ?? []]))
}

/** Complaints about an edge: values that differ by more than `allowed`. */
function differences(
  name: string,
  edges: ReadonlyMap<string, Float64Array>,
  wanted: ArrayLike<number>,
  allowed: 0 | 1,
): string[] {
  const found = edges.get(name)
  if (found === undefined) return [`${name} is not in memory`]
  if (found.length !== wanted.length) return [`${name} has ${found.length} values, expected ${wanted.length}`]
  const wrong = Array.from(found).flatMap((value, i) => (Math.abs(value - (wanted[i] ?? Number.NaN)) <= allowed ? [] : [i]))
  const [first] = wrong
  return first === undefined
    ? []
    : [`${name}: ${wrong.length} of ${found.length} differ, at ${first} ${found[first]} instead of ${wanted[first]}`]
}

/** Every edge of a plan whose attention is int8, against the reference over the device's own edges. */
function check(
  edges: ReadonlyMap<string, Float64Array>,
  packed: boolean,
  residual: 'float' | 'int8',
  { norms = 'post', activation = 'gelu' }: { readonly norms?: 'post' | 'pre'; readonly activation?: Activation } = {},
): string[] {
  const edge = (name: string): Float64Array => edges.get(name) ?? new Float64Array()
  const complaints: string[] = []
  const expectEdge = (name: string, wanted: ArrayLike<number>, allowed: 0 | 1 = 0): void => {
    complaints.push(...differences(name, edges, wanted, allowed))
  }
  const rows = edge('x').length / hidden
  const multiply = (name: string, x: string): void => {
    const { values } = int8(`${name}Weight`)
    const n = sizes[`${name}Weight`]?.[0] ?? 0
    expectEdge(name, reference.product(edge(x), values, rows, n, edge(x).length / rows))
  }
  const dense = (name: string, site: string) =>
    reference.biased(edge(name), step(site), int8(`${name}Weight`).scales, weight(`${name}Bias`))
  const norm = (name: string, values: ArrayLike<number>) =>
    reference.layerNorm(values, weight(`${name}Gamma`), weight(`${name}Beta`), eps)
  const [site, x] = norms === 'pre' ? ['attentionNorm', 'attentionNorm.int8'] : ['x', residual === 'float' ? 'x.int8' : 'x']
  if (norms === 'pre')
    expectEdge('attentionNorm.int8', reference.quantised(norm('attention', edge('x')), inverse('attentionNorm')), 1)
  else if (residual === 'float') expectEdge('x.int8', reference.quantised(edge('x'), inverse('x')))
  const merged = packed ? 'merged.pack.int8' : 'merged.int8'
  for (const part of ['query', 'key', 'value']) {
    multiply(part, x)
    const stepped = reference.quantised(dense(part, site), inverse(`${part}Bias`))
    expectEdge(`${part}Heads`, packed ? reference.unpacked(stepped, hidden, heads) : stepped)
  }
  expectEdge('scores', reference.scores(edge('queryHeads'), edge('keyHeads'), heads))
  const scored = reference.scaled(edge('scores'), step('queryBias'), step('keyBias'))
  const probabilities = reference.softmax(scored, factor, heads)
  expectEdge('probabilities.int8', reference.quantised(probabilities, inverse('probabilities')), 1)
  expectEdge('context', reference.context(edge('probabilities.int8'), edge('valueHeads'), heads))
  const joined = reference.quantised(
    reference.scaled(edge('context'), step('probabilities'), step('valueBias')),
    inverse('merged'),
  )
  expectEdge(merged, packed ? reference.packed(joined, hidden, rows, heads) : joined)
  multiply('projection', merged)
  const input = residual === 'float' ? edge('x') : reference.dequantised(edge('x'), step('x'))
  // Where norms stand in front, it is the second one that the inner network reads.
  const inner = norms === 'pre' ? 'output' : 'attention'
  const normed = norm(inner, reference.plus(dense('projection', 'merged'), input))
  expectEdge(`${inner}Norm.int8`, reference.quantised(normed, inverse(`${inner}Norm`)), 1)
  multiply('fc1', `${inner}Norm.int8`)
  const activated = activations[activation](dense('fc1', `${inner}Norm`))
  expectEdge('fc1Activation.int8', reference.quantised(activated, inverse('fc1Activation')), 1)
  multiply('fc2', 'fc1Activation.int8')
  if (residual === 'int8') {
    const before = reference.dequantised(edge('attentionNorm.int8'), step('attentionNorm'))
    const output = norm('output', reference.plus(dense('fc2', 'fc1Activation'), before))
    expectEdge('outputNorm.int8', reference.quantised(output, inverse('outputNorm')), 1)
  }
  return complaints
}

const v3 = [1, 2].flatMap((mode) =>
  ['', '-2r4r4'].flatMap((order) =>
    ['', '-packed'].map((packed) => [`ft-v3-mode${mode}${order}${packed}`, mode, packed !== ''] as const),
  ),
)

describe('integer edges of a layer equal the written-out reference', () => {
  it.each(inTurn([...v3, ['int8-row', 1, true] as const]))('%s', async (plan, mode, packed) => {
    const edges = await edgesOf(plan)
    expect(check(edges, packed, mode === 1 ? 'float' : 'int8')).toEqual([])
    expect([...edges.keys()]).toEqual(expect.arrayContaining(['scores', 'context', 'fc1', 'fc2', 'probabilities.int8']))
  })

  const layers = [
    ['int8-row', 'post', 'relu', true, 'float'],
    ['int8-row', 'pre', 'silu', true, 'float'],
    ['int8-row', 'pre', 'gelu', true, 'float'],
    ['ft-v3-mode1', 'pre', 'relu', false, 'float'],
    ['ft-v3-mode1-2r4r4-packed', 'pre', 'gelu_tanh', true, 'float'],
    ['ft-v3-mode1-packed', 'post', 'silu', true, 'float'],
    ['ft-v3-mode2', 'post', 'gelu_tanh', false, 'int8'],
  ] as const
  it.each(inTurn(layers))('%s, norms %s, %s', async (plan, norms, activation, packed, residual) => {
    const edges = await edgesOf(plan, simt.manifest, encoderLayers[norms][activation])
    expect(check(edges, packed, residual, { norms, activation })).toEqual([])
    // Another activation would be another edge.
    const other = activation === 'relu' ? 'silu' : 'relu'
    expect(check(edges, packed, residual, { norms, activation: other }).join()).toContain('fc1Activation.int8')
  })

  it('int8-row with generated products where they were measured to be faster', async () => {
    const products = () => launched.filter((kernel) => kernel === 'int8_matmul' || kernel === 'library')
    await edgesOf('int8-row')
    expect(products()).toEqual(Array(8).fill('library'))
    const measured = [
      { architecture: 'sm_90', length: hidden, depth: hidden, fromRows: 1, toRows: tokens },
      { architecture: 'sm_90', length: inner, depth: hidden, fromRows: tokens },
      // fc2 has one row too many for what was measured, and stays the library's.
      { architecture: 'sm_90', length: hidden, depth: inner, fromRows: 1, toRows: tokens - 1 },
    ]
    const kernels = simt.manifest.kernels.map((entry) => (entry.op === 'int8_matmul' ? { ...entry, measured } : entry))
    const edges = await edgesOf('int8-row', { ...simt.manifest, kernels })
    expect(products().filter((kernel) => kernel === 'int8_matmul')).toHaveLength(5)
    expect(check(edges, true, 'float')).toEqual([])
  })

  it('best-encoder-int8, norms in front, with activations by turns', async () => {
    for (const activation of inTurn(['relu', 'silu', 'gelu_tanh'] as const)) {
      const edges = await edgesOf('best-encoder-int8', simt.manifest, encoderLayers.pre[activation])
      const edge = (name: string): Float64Array => edges.get(name) ?? new Float64Array()
      const multiplied = (name: string, x: string, site: string): Float64Array => {
        const { values, scales } = int8(`${name}Weight`)
        const sums = reference.product(edge(x), values, tokens, sizes[`${name}Weight`]?.[0] ?? 0, edge(x).length / tokens)
        return reference.biased(sums, step(site), scales, weight(`${name}Bias`))
      }
      const norm = (name: string, x: ArrayLike<number>) =>
        reference.quantised(reference.layerNorm(x, weight(`${name}Gamma`), weight(`${name}Beta`), eps), inverse(`${name}Norm`))
      const complaints = differences('attentionNorm.int8', edges, norm('attention', edge('x')), 1)
      const residual = reference.plus(multiplied('projection', 'merged.pack.int8', 'merged'), edge('x'))
      complaints.push(...differences('outputNorm.int8', edges, norm('output', residual), 1))
      const activated = activations[activation](multiplied('fc1', 'outputNorm.int8', 'outputNorm'))
      complaints.push(...differences('fc1Activation.int8', edges, reference.quantised(activated, inverse('fc1Activation')), 1))
      expect(complaints, activation).toEqual([])
    }
  })

  it('best-encoder-int8', async () => {
    const edges = await edgesOf('best-encoder-int8')
    const edge = (name: string): Float64Array => edges.get(name) ?? new Float64Array()
    const multiplied = (name: string, x: string, site: string): Float64Array => {
      const { values, scales } = int8(`${name}Weight`)
      const n = sizes[`${name}Weight`]?.[0] ?? 0
      const sums = reference.product(edge(x), values, tokens, n, edge(x).length / tokens)
      return reference.biased(sums, step(site), scales, weight(`${name}Bias`))
    }
    const parts = ['query', 'key', 'value'].map((part) => reference.unpacked(multiplied(part, 'x.int8', 'x'), hidden, heads))
    const [query = [], key = [], value = []] = parts
    const probabilities = reference.softmax(reference.scores(query, key, heads), factor, heads)
    const merged = reference.packed(reference.context(probabilities, value, heads), hidden, tokens, heads)
    const complaints = differences('merged.pack.int8', edges, reference.quantised(merged, inverse('merged')), 1)
    const attention = reference.layerNorm(
      reference.plus(multiplied('projection', 'merged.pack.int8', 'merged'), edge('x')),
      weight('attentionGamma'),
      weight('attentionBeta'),
      eps,
    )
    complaints.push(...differences('attentionNorm.int8', edges, reference.quantised(attention, inverse('attentionNorm')), 1))
    const activated = reference.gelu(multiplied('fc1', 'attentionNorm.int8', 'attentionNorm'), erf)
    complaints.push(...differences('fc1Activation.int8', edges, reference.quantised(activated, inverse('fc1Activation')), 1))
    const output = reference.layerNorm(
      reference.plus(multiplied('fc2', 'fc1Activation.int8', 'fc1Activation'), attention),
      weight('outputGamma'),
      weight('outputBeta'),
      eps,
    )
    complaints.push(...differences('outputNorm.int8', edges, reference.quantised(output, inverse('outputNorm')), 1))
    expect(complaints).toEqual([])
  })

  it('tells a wrong step and a wrong sum from right ones', async () => {
    const edges = new Map(await edgesOf('ft-v3-mode2'))
    const planted = (name: string, change: (values: Float64Array) => void): string[] => {
      const values = Float64Array.from(edges.get(name) ?? [])
      change(values)
      return check(new Map([...edges, [name, values]]), false, 'int8')
    }
    expect(planted('scores', (values) => values.fill((values[17] ?? 0) + 1, 17, 18))[0]).toContain('scores: 1 of')
    expect(planted('queryHeads', (values) => values.fill((values[3] ?? 0) + 1, 3, 4))[0]).toContain('queryHeads: 1 of')
    expect(planted('fc1Activation.int8', (values) => values.fill((values[9] ?? 0) + 2, 9, 10))[0]).toContain(
      'fc1Activation.int8: 1 of',
    )
  })
})
