/**
 * A layer under INT8 plans on the CPU device, edge by edge, for sequences of any size and masks over them; and the expected value of each edge, by
 * the written-out reference over the device's own edges.
 */
import { encoderLayers } from '../../specs/graphs/encoder_layers.js'
import { layouts, plans } from '../../specs/index.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { aliasesOf } from '../../src/fuse/graph/edit.js'
import { prepareGraph } from '../../src/fuse/passes.js'
import { erf } from '../../src/ir/erf.js'
import { type Graph, type GraphValue, outputsOf } from '../../src/ir/graph.js'
import { stepOf, stepsPerUnit } from '../../src/ir/int8_scale.js'
import type { GraphDecl } from '../../src/lang/graph.js'
import { decode } from '../../src/runtime/buffer.js'
import { findLayout, layoutSize } from '../../src/runtime/layouts.js'
import { encodeNumbers } from '../../src/runtime/numbers.js'
import { prepareWeights } from '../../src/runtime/prepare_weights.js'
import { buildProgram } from '../../src/runtime/program.js'
import { quantiseWeights } from '../../src/runtime/quantise_weights.js'
import { openSession } from '../../src/runtime/session.js'
import { root } from '../conformance/simt.js'
import { noise } from './fixtures.js'
import * as reference from './int8_reference.js'
import type { openSimtKernels } from './simt.js'

/** Sequences, and their random values. */
export interface Sequences {
  readonly heads: reference.Heads
  /** Rows of packed tokens, two of which have none. */
  readonly tokens: number
  /** Rows of padded tokens. */
  readonly floats: Float64Array
}

const [headsOf, headDim, inner] = [2, 64, 96]
export const hidden = headsOf * headDim
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
export const [eps, factor] = [1e-12, 0.125]

const next = noise(7)
const draw = (length: number, spread: number, centre = 0): Float32Array =>
  Float32Array.from({ length }, () => centre + spread * (next() + next()))
export const sizes: Readonly<Record<string, readonly number[]>> = {
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
export const weight = (name: string): Float32Array => weights[name]?.values ?? new Float32Array()
/** One channel has no weights: its step is 0. */
weight('keyWeight').fill(0, 5 * hidden, 6 * hidden)
export const int8 = (name: string) =>
  quantiseWeights({ name, values: weight(name), rows: sizes[name]?.[0] ?? 0, columns: sizes[name]?.[1] ?? 0 })

export const step = (site: string): number => stepOf(amax[site] ?? 0)
export const inverse = (site: string): number => stepsPerUnit(amax[site] ?? 0)

const { kernels, layouts: lowered } = readSpecsOrThrow({ root, specs: ['specs'] })
const ops = new Map(kernels.map((kernel) => [kernel.name, kernel]))
const layoutIr = new Map(lowered.map((layout) => [layout.name, layout]))

type Simt = Awaited<ReturnType<typeof openSimtKernels>>

export type Activation = keyof typeof encoderLayers.post

const each = (of: (x: number) => number) => (values: ArrayLike<number>) => Float64Array.from(values, of)

/** Activations written out, in double precision. */
export const activations: Readonly<Record<Activation, (values: ArrayLike<number>) => ArrayLike<number>>> = {
  gelu: (values) => reference.gelu(values, erf),
  gelu_tanh: each((x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)))),
  relu: each((x) => Math.max(x, 0)),
  silu: each((x) => x / (1 + Math.exp(-x))),
}

/** Edges by node, and the kernels and library matmuls of the run. */
export type Edges = ReadonlyMap<string, Float64Array> & { readonly launched?: readonly string[] }

/** Runs the layer under a plan: the device's value of every integer edge that exists in memory, and of the inputs, by node. */
export async function edgesOf(
  simt: Simt,
  sequences: Sequences,
  name: string,
  layer: GraphDecl = encoderLayers.post.gelu,
  manifest = simt.manifest,
): Promise<Edges> {
  const { heads, tokens } = sequences
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
  const given = inputsOf(graph, sequences)
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
    dims: { b: heads.batch, s: heads.seq, h: heads.heads, d: heads.headDim, i: inner, t: tokens },
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
  const launched = program.steps.map(({ kernel = 'library' }) => kernel)
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
  return Object.assign(edges, { launched })
}

/** True if a value has the rank its layout is for: one seen in a coarser shape only names it. */
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

export function sequencesOf(given: Omit<reference.Heads, 'heads' | 'headDim'>): Sequences {
  const heads = { ...given, heads: headsOf, headDim }
  const tokens = heads.lengths.reduce((a, b) => a + b, 0) + 2
  return { heads, tokens, floats: Float64Array.from(draw(heads.batch * heads.seq * hidden, 1.2)) }
}

/** Arguments of a planned layer, by its inputs. */
function inputsOf({ inputs, values }: Graph, { heads, tokens, floats }: Sequences): Record<string, ArrayLike<number>> {
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
    mask: heads.mask ?? [],
    starts,
    sequences: rows,
    positions: rows.map((b, t) => (b < 0 ? 0 : t - (starts[b] ?? 0))),
  }
  return Object.fromEntries(Object.keys(inputs).map((name) => [name, all[name] ?? []]))
}

/** Complaints about an edge: values that differ by more than `allowed`. */
export function differences(
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

/** Compares every edge of a plan with int8 attention with the reference, computed from the device's edges. */
export function check(
  { heads }: Sequences,
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
  // With norms first, the inner network reads the second one.
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
