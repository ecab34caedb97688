/** The cost model against numbers computed by hand. */
import { readFile } from 'node:fs/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { decoderLayers } from '../../specs/graphs/decoder_layer.js'
import { embeddings } from '../../specs/graphs/embeddings.js'
import { encoderLayerGelu } from '../../specs/graphs/encoder_layer.js'
import { llamaLayer } from '../../specs/graphs/llama_layer.js'
import { plans } from '../../specs/index.js'
import { bestDecoder } from '../../specs/plans/best_decoder.js'
import { bestEncoder } from '../../specs/plans/best_encoder.js'
import { ftV1 } from '../../specs/plans/ft_v1.js'
import { computedWork, fewRows } from '../../src/cost/computed.js'
import { costDevice } from '../../src/cost/device.js'
import type { Pricing } from '../../src/cost/step.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import type { LayoutsByName } from '../../src/fuse/graph/edit.js'
import { dim, i32, index } from '../../src/ir/build.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { rowMajor } from '../../src/ir/layout.js'
import type { MatmulKernel } from '../../src/ir/product.js'
import type { PlanDecl } from '../../src/lang/plan.js'
import { Candidates } from '../../src/search/candidates.js'
import { explainPlan, type PlanStep } from '../../src/search/explain.js'
import { axis, kernel, tensor as parameter } from '../schedule/fixtures.js'
import { planOf } from './plan_of.js'
import { Draft } from './random/draft.js'

const ftV1Gelu = planOf(ftV1, encoderLayerGelu)

const dims = { b: 2, s: 3, t: 6, h: 2, d: 4, i: 5, v: 100, u: 2, p: 7 }
/** Rates that leave bytes of memory as the only cost of a row kernel. */
const rates = {
  ...costDevice('simt').rates,
  issue: Number.POSITIVE_INFINITY,
  cache: Number.POSITIVE_INFINITY,
  near: Number.POSITIVE_INFINITY,
  cacheBytes: 0,
}
const device = { bandwidth: 4, peak: { f32: 1, f16: 2, bf16: 2, i8: 4 }, warps: 0.5, launch: 3, product: 5, rates }
const pricing: Pricing = { device, dims, dtype: 'f16' }
let ops: ReadonlyMap<string, Kernel>
let layouts: LayoutsByName

beforeAll(() => {
  const specs = readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] })
  ops = new Map(specs.kernels.map((kernel) => [kernel.name, kernel]))
  layouts = new Map(specs.layouts.map((layout) => [layout.name, layout]))
})

/** A matmul of floats and int8 weights, with the fields that its cost needs. */
const wide: MatmulKernel = {
  kind: 'matmul',
  name: 'wide',
  source: { file: 'specs/ops.ts', line: 1, column: 1 },
  dims: ['m', 'n', 'k'],
  types: {},
  attrs: [],
  tensors: [
    { name: 'a', access: 'in', dtype: { param: 'T' }, dims: ['m', 'k'], layout: rowMajor(['m', 'k']) },
    { name: 'b', access: 'in', dtype: 'i8', dims: ['n', 'k'], layout: rowMajor(['n', 'k']) },
  ],
  batch: [],
  m: 'm',
  n: 'n',
  k: 'k',
  a: { tensor: 'a' },
  products: [{ b: { tensor: 'b' }, accumulator: 'x' }],
  epilogue: kernel('wide', 'm n', [axis('r', 'm')], [parameter('x', 'in', 'm n', 'f32')], []),
}

/** Elements of f16 read and written, further bytes read, and arithmetic of each step of a layer. */
type ByHand = readonly (readonly [kernel: string, read: number, written: number, further: number, flops: number])[]

const [rows, hidden, inner, pairs] = [2 * 3, 2 * 4, 5, 2 * 2 * 3 * 3]
const linear = (name: string, n: number, k: number) => [name, rows * k + n * k, rows * n, 0, 2 * rows * n * k] as const
const heads = [rows * hidden + pairs, rows * hidden, 2 * pairs * 4] as const
const norm = ['bias_residual_layer_norm', 2 * rows * hidden + 3 * hidden, rows * hidden, 0, 0] as const

const ftV1ByHand: ByHand = [
  linear('query', hidden, hidden),
  linear('key', hidden, hidden),
  linear('value', hidden, hidden),
  ['qkv_bias_split_heads', 3 * (rows * hidden + hidden), 3 * rows * hidden, 0, 0],
  ['scores', 2 * rows * hidden, pairs, 0, heads[2]],
  // The lengths of both sequences are i32.
  ['scale_mask_softmax', pairs, pairs, 2 * 4, 0],
  ['context', heads[0], heads[1], 0, heads[2]],
  ['merge_heads', rows * hidden, rows * hidden, 0, 0],
  linear('projection', hidden, hidden),
  norm,
  linear('fc1', inner, hidden),
  ['bias_gelu', rows * inner + inner, rows * inner, 0, 0],
  linear('fc2', hidden, inner),
  norm,
]

function compare(steps: readonly PlanStep[], expected: ByHand): void {
  expect(steps.map(({ kernel, bytesRead, bytesWritten, flops }) => [kernel, bytesRead, bytesWritten, flops])).toEqual(
    expected.map(([kernel, read, written, further, flops]) => [kernel, 2 * read + further, 2 * written, flops]),
  )
}

describe('a layer under ft-v1', () => {
  it('counts bytes and arithmetic as computed by hand', () => {
    const { steps, totals } = explainPlan(encoderLayerGelu.graph, ftV1Gelu, ops, pricing)
    compare(steps, ftV1ByHand)
    const times = ftV1ByHand.map(
      ([, read, written, further, flops]) => (flops > 0 ? 5 : 3) + Math.max((2 * (read + written) + further) / 4, flops / 2),
    )
    expect(totals).toEqual({
      kernels: 6,
      matmuls: 8,
      launches: 14,
      bytes: ftV1ByHand.reduce((sum, [, read, written, further]) => sum + 2 * (read + written) + further, 0),
      flops: ftV1ByHand.reduce((sum, [, , , , flops]) => sum + flops, 0),
      microseconds: 1e6 * times.reduce((sum, time) => sum + time, 0),
    })
  })

  it('a step that counts its result as read too is noticed', () => {
    const { steps } = explainPlan(encoderLayerGelu.graph, ftV1Gelu, ops, pricing)
    const wrong = steps.map((step) =>
      step.kernel === 'bias_gelu' ? { ...step, bytesRead: step.bytesRead + step.bytesWritten } : step,
    )
    expect(() => compare(wrong, ftV1ByHand)).toThrow()
  })
})

describe('templates', () => {
  const plan = bestEncoder.find(({ graph }) => graph === encoderLayerGelu.name)
  const stepOf = (kernel: string) => {
    if (plan === undefined) throw new Error('no plan')
    return explainPlan(encoderLayerGelu.graph, plan, ops, pricing).steps.find((step) => step.kernel === kernel)
  }

  it('attention reads query, key and value once and does not store scores', () => {
    // The parts of a stack of three, lengths and starts of two sequences.
    const [bytesRead, bytesWritten] = [2 * 3 * rows * hidden + 2 * 2 * 4, 2 * rows * hidden]
    expect(stepOf('attention')).toMatchObject({ bytesRead, bytesWritten, flops: 4 * pairs * 4 })
  })

  it('a matmul with an epilogue reads its operands, the bias and the residual', () => {
    const [bytesRead, bytesWritten] = [2 * (2 * rows * hidden + hidden * hidden + hidden), 2 * rows * hidden]
    expect(stepOf('matmul_bias_residual')).toMatchObject({ bytesRead, bytesWritten, flops: 2 * rows * hidden * hidden })
  })
})

it('decode attention multiplies the query of a row by every place of its past, and weighs as many values', () => {
  const layer = decoderLayers.pre.relu
  const plan = bestDecoder.find(({ graph }) => graph === layer.name)
  if (plan === undefined) throw new Error('no plan')
  const decoding = { ...pricing, dims: { b: 2, w: 3, s: 5, t: 7, h: 2, d: 4, i: 5 } }
  const flopsOf = (kernel: string): number | undefined =>
    explainPlan(layer.graph, plan, ops, decoding, layouts).steps.find((each) => each.kernel === kernel)?.flops
  expect(flopsOf('decode_attention')).toBe(4 * (2 * 3) * 2 * 5 * 4)
  expect(flopsOf('cross_attention')).toBe(4 * (2 * 3) * 2 * 7 * 4)
})

describe('caches that are updated in place', () => {
  const unfused = (graph: string): PlanDecl => ({ name: 'unfused', graph, groups: [] })
  const stepAt = (steps: readonly PlanStep[], node: string) => steps.find(({ nodes }) => nodes.includes(node))

  it('are counted for the token that is appended, and for the places that are attended', () => {
    const layer = decoderLayers.pre.relu
    const plan = bestDecoder.find(({ graph }) => graph === layer.name)
    if (plan === undefined) throw new Error('no plan')
    const decoding = { ...pricing, dims: { b: 2, w: 3, s: 5, t: 7, h: 2, d: 4, i: 5 } }
    const joined = 2 * 3 * 2 * 4
    const { steps } = explainPlan(layer.graph, unfused(layer.name), ops, decoding, layouts)
    expect(stepAt(steps, 'keyCache')).toMatchObject({ bytesRead: 2 * joined + 4, bytesWritten: 2 * joined })
    const fused = explainPlan(layer.graph, plan, ops, decoding, layouts).steps
    // The token's keys and values join, and its result is stored; the memory of the encoder is read alone.
    expect(stepAt(fused, 'keyCache')?.bytesWritten).toBe(2 * 3 * joined)
    expect(stepAt(fused, 'crossScores')?.bytesWritten).toBe(2 * joined)
  })

  it('are counted for the appended tokens of a prompt', () => {
    const layer = llamaLayer('prompt', { bias: 'none', norm: false, window: false, caches: 'float' })
    const prompt = { ...pricing, dims: { r: 3, u: 50, n: 16, h: 4, g: 2, d: 4, i: 8, p: 64, e: 2, t: 7, b: 3, s: 4 } }
    const { steps } = explainPlan(layer.graph, unfused(layer.name), ops, prompt, layouts)
    const joined = 7 * 2 * 4
    expect(stepAt(steps, 'valueCache')?.bytesWritten).toBe(2 * joined)
    expect(stepAt(steps, 'valueCache')?.bytesRead).toBeLessThan(2 * joined + 4 * 4 * 3 + 1)
  })
})

describe('int8', () => {
  const planOf = (wanted: string): PlanDecl => {
    const plan = plans.find(({ name, graph }) => name === wanted && graph === encoderLayerGelu.name)
    if (plan === undefined) throw new Error('no plan')
    return plan
  }
  const priced = (flops: Pricing['device']['peak'], plan = 'best-encoder-int8') => {
    const bound = { bandwidth: Number.POSITIVE_INFINITY, peak: flops, warps: 1, launch: 0, product: 0, rates }
    return explainPlan(encoderLayerGelu.graph, planOf(plan), ops, { ...pricing, device: bound }, layouts).steps
  }

  it('has its own rate, and floats theirs', () => {
    // Heads of 4 elements fill a quarter of their tile.
    const narrow = 4
    for (const { kind, flops, microseconds } of priced({ f32: 1, f16: 2, bf16: 2, i8: 4 }))
      expect(microseconds / 1e6).toBeCloseTo(kind === 'attention' ? (narrow * flops) / 2 : flops / 4)
  })

  it.each(['int8-row', 'ft-v3-mode1', 'ft-v3-mode2-packed'])(
    'has that rate in all matmuls of %s, those of attention among them',
    (plan) => {
      const multiplying = priced({ f32: 1, f16: 2, bf16: 2, i8: 4 }, plan).filter(({ flops }) => flops > 0)
      for (const { nodes, flops, microseconds } of multiplying) expect(microseconds / 1e6, nodes.join()).toBeCloseTo(flops / 4)
      expect(multiplying.map(({ nodes }) => nodes[0])).toEqual(expect.arrayContaining(['query', 'scores', 'context', 'fc2']))
      // The library multiplies if the plan has no kernel for it.
      const kinds = new Set(multiplying.map(({ kind }) => kind))
      expect(kinds.has('library matmul')).toBe(plan === 'int8-row')
    },
  )

  it('predicts the measured winner, and the loser if row kernels run between matmuls', () => {
    const { graph } = encoderLayerGelu
    const seconds = (plan: string, b: number, s: number): number => {
      const usual = { ...graph.typical, b, s, t: b * s }
      const { steps } = explainPlan(graph, planOf(plan), ops, { device: costDevice('h200'), dims: usual, dtype: 'f16' }, layouts)
      return steps.reduce((sum, { microseconds }) => sum + microseconds, 0)
    }
    const shapes = [
      [8, 128],
      [32, 128],
      [32, 512],
      [128, 128],
    ] as const
    for (const [b, s] of shapes) {
      const floats = seconds('best-encoder', b, s)
      expect(seconds('best-encoder-int8', b, s)).toBeLessThan(floats)
      expect(seconds('int8-row', b, s)).toBeGreaterThan(floats)
    }
  })

  it('int8 weights are converted first for many rows', () => {
    const kernels = [1, 8, 9].map((m) => {
      const sizes = { dims: { m, n: 64, k: 32 }, attrs: {} }
      return computedWork({ ...wide, products: [{ b: { tensor: 'b' }, accumulator: 'x' }] }, sizes, 'f16').stored
    })
    expect(kernels).toEqual([[], [], [64 * 32]])
    const floats = { ...wide, tensors: wide.tensors.map((tensor) => ({ ...tensor, dtype: { param: 'T' } })) }
    expect(computedWork(floats, { dims: { m: 9, n: 64, k: 32 }, attrs: {} }, 'f16').stored).toEqual([])
  })
})

it('rows that are not aligned are copied by one launch, except in f32 and where they are short', () => {
  const floats = { ...wide, tensors: wide.tensors.map((tensor) => ({ ...tensor, dtype: { param: 'T' } })) }
  const stored = (k: number, dtype: 'f16' | 'f32', kernel: MatmulKernel = floats) =>
    computedWork(kernel, { dims: { m: 9, n: 64, k }, attrs: {} }, dtype).stored
  expect(stored(100, 'f16')).toEqual([(9 + 64) * 100])
  expect([stored(104, 'f16'), stored(100, 'f32'), stored(60, 'f16')]).toEqual([[], [], []])
  const bytes = { ...wide, tensors: wide.tensors.map((tensor) => ({ ...tensor, dtype: 'i8' as const })) }
  expect(stored(104, 'f16', bytes)).toEqual([(9 + 64) * 104])
})

it('the longest row that no launch copies is that of the device headers', async () => {
  const header = await readFile('native/device/matmul.cuh', 'utf8')
  expect(/short_k = (\d+),/.exec(header)?.[1]).toBe('64')
})

it('a computed operand has few rows if the main loop for few rows runs', async () => {
  const header = await readFile('native/device/matmul_few_tile.cuh', 'utf8')
  expect(/most_rows = (\d+);/.exec(header)?.[1]).toBe(String(fewRows))
})

describe('gathers', () => {
  it('of a sum per element count its loads, too', () => {
    const draft = new Draft()
    const [ids, table] = [draft.input('b u', 'id'), draft.input('v c')]
    const reads = { ids: { value: ids, dims: ['b', 'u'] }, table: { value: table, dims: ['v', 'c'] } }
    draft.output(
      draft.each(
        ['b', 'c'],
        { b: 'b', c: 'c', u: 'u', v: 'v' },
        reads,
        ({ ids: of, table: from }, { b = i32(0), c = i32(0) }) => {
          const value = from?.(of?.(b, index('j')) ?? i32(0), c) ?? i32(0)
          return { kind: 'fold', type: 'f32', monoid: 'sum', length: dim('u'), index: 'j', value }
        },
      ),
    )
    const sizes = { ...pricing, dims: { b: 2, u: 3, v: 1000, c: 8 } }
    const { steps } = explainPlan(draft.graph(), { name: 'unfused', graph: 'drawn', groups: [] }, draft.kernels, sizes)
    expect(steps[0]).toMatchObject({ bytesRead: 2 * 2 * 3 * 8 + 4 * 2 * 3, bytesWritten: 2 * 2 * 8 })
  })

  it('count the rows they fetch, not the table', () => {
    const plan: PlanDecl = { name: 'unfused', graph: embeddings.name, groups: [] }
    const { steps } = explainPlan(embeddings.graph, plan, ops, pricing)
    const lookup = { bytesRead: 2 * rows * hidden + 4 * rows, bytesWritten: 2 * rows * hidden }
    expect(steps.find(({ nodes }) => nodes.includes('words'))).toMatchObject(lookup)
    // A table of two rows is read at most once.
    const small = { bytesRead: 2 * 2 * hidden + 4 * rows, bytesWritten: 2 * rows * hidden }
    expect(steps.find(({ nodes }) => nodes.includes('types'))).toMatchObject(small)
  })
})

describe('registers', () => {
  it('a group whose rows do not fit reads them in every pass', () => {
    const wide = { ...pricing, dims: { ...dims, h: 1024, d: 64 } }
    const candidates = new Candidates(encoderLayerGelu.graph, { name: 'p', graph: encoderLayerGelu.name, groups: [] }, ops, wide)
    const group = candidates.of(['projectionBias', 'attentionResidual', 'attentionNorm'])
    const [length, passes] = [1024 * 64, 3]
    const bytesRead = 2 * (passes * (2 * rows * length + length) + 2 * length)
    expect(group).toMatchObject({ kind: 'legal', cost: { rereads: true, bytesRead, bytesWritten: 2 * rows * length } })
  })
})

it('an unknown device is a usage error that names the known ones', () => {
  expect(() => costDevice('abacus')).toThrow('no cost model of device abacus')
})
