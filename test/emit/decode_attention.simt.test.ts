/**
 * Emitted decode attention on the simt device against a plain loop in double precision: heads that share keys and values, windows of
 * places, denominators, values of another size, and a fresh place that is stored once.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { call, dim, f32, i32, index, local } from '../../src/ir/build.js'
import type { DType } from '../../src/ir/dtype.js'
import { type Env, emptyEnv, evaluateExpr } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'
import type { DecodeAttentionKernel } from '../../src/ir/template.js'
import { roundTo } from '../../src/runtime/numbers.js'
import { compare } from '../../src/verify/compare.js'
import { tolerance } from '../../src/verify/tolerance.js'
import { inTurn, oneInTurn } from '../turns.js'
import { add, b, c, h, i, input, j, load, loadInt, mul, number, raw, result, scaled, select, sub } from './attention_subject.js'
import { type Host, launch, openKernels } from './host.js'

type Numbers = Readonly<Record<string, number>>
type Given = Partial<Omit<DecodeAttentionKernel, 'kind'>> & { readonly group?: number }

/** The storage type whose turn it is. */
const types = [oneInTurn(['f16', 'f32'] as const, 0)]

/** Attention of q[b, s, h, d] to places of k[b, g, t, d] and v[b, g, t, e]. */
function kernelOf(name: string, { group = 1, tensors = [], ...given }: Given = {}): DecodeAttentionKernel {
  const owner = local('owner', 'i32')
  return {
    kind: 'decode attention',
    name,
    source: { file: 'test.ts', line: 1, column: 1 },
    dims: ['b', 's', 't', 'h', 'g', 'd', 'e'],
    types: { T: types },
    attrs: [],
    tensors: [
      input('q', 'b s h d'),
      input('k', 'b g t d'),
      input('v', 'b g t e'),
      ...tensors,
      { ...input('y', 'b s h e'), access: 'out' },
    ],
    batch: dim('b'),
    heads: dim('h'),
    shared: i32(group),
    queries: dim('s'),
    headDim: dim('d'),
    valueDim: dim('e'),
    places: dim('t'),
    query: load('q', b, i, h, c),
    owner: b,
    key: { tensor: 'k', indices: [owner, h, j, i32(0)] },
    value: { tensor: 'v', indices: [owner, h, j, i32(0)] },
    out: { tensor: 'y', indices: [b, i, h, i32(0)] },
    score: scaled(0.25),
    range: { lower: i32(0), upper: dim('t') },
    denominator: local('total'),
    stored: result,
    fresh: undefined,
    ...given,
  }
}

const half = call('idiv', dim('d'), i32(2))
/** The other half's element, with the sign of a rotation by a right angle. */
const turned = mul(
  select(call('lt', c, half), number(-1), number(1)),
  load('q', b, i, h, select(call('lt', c, half), add(c, half), sub(c, half))),
)
const steps = input('steps', 'b', 'i32')
const step = loadInt('steps', b)

const all: readonly DecodeAttentionKernel[] = [
  kernelOf('every_place'),
  kernelOf('groups_of_four', { group: 4 }),
  kernelOf('groups_of_three', { group: 3, stored: mul(result, add(call('toFloat', c), f32(0.5))) }),
  kernelOf('window_of_places', { group: 2, tensors: [steps], range: { lower: sub(step, i32(20)), upper: add(step, i32(1)) } }),
  kernelOf('heads_differ', { group: 4, range: { lower: mul(h, i32(5)), upper: sub(dim('t'), mul(i, i32(9))) } }),
  kernelOf('none_attended', { range: { lower: dim('t'), upper: dim('t') } }),
  kernelOf('masked_by_score', { group: 2, score: select(call('lt', j, i32(40)), number(-1e30), scaled(0.25)) }),
  kernelOf('large_scores', { score: add(mul(raw, f32(4096)), f32(-1e9)) }),
  kernelOf('sinks', {
    group: 2,
    tensors: [input('sink', 'h', 'f32')],
    denominator: add(local('total'), call('exp', sub(load('sink', h), local('top')))),
  }),
  kernelOf('turned_query', { group: 2, query: add(load('q', b, i, h, c), turned) }),
]

const kernelNamed = (name: string): DecodeAttentionKernel =>
  all.find((kernel) => kernel.name === name) ?? expect.fail(`no ${name}`)
const [groups, window] = [kernelNamed('groups_of_four'), kernelNamed('window_of_places')]
/** Those whose turn it is. */
const kernels = inTurn(all)
/** The one that is run over segments of places. */
const long = oneInTurn([groups, kernelNamed('heads_differ')], 0)

const draws: Readonly<Record<string, (at: number, dims: Numbers) => number>> = {
  steps: (at, { t = 1 }) => Math.max(0, t - 1 - 30 * at),
  sink: (at) => at - 1,
}
const pattern = (at: number): number => ([3, -5, 1, 7, -2, -8, 4, 6, -1, -3, 8, 2, -6][(at * 5 + (at >> 3)) % 13] ?? 0) / 8

/** Results of [b, s, h, e]. */
function attend(kernel: DecodeAttentionKernel, tensors: Env['tensors'], dims: Numbers): number[] {
  const env: Env = { ...emptyEnv(dims), tensors }
  const at = (names: Numbers, expr: Expr): number => {
    for (const [name, value] of Object.entries(names)) env.values.set(name, value)
    return Number(evaluateExpr(expr, env))
  }
  const { b: batch = 0, s = 0, t = 0, h: heads = 0, d = 0, e = 0 } = dims
  const shared = Number(evaluateExpr(kernel.shared, env))
  const y: number[] = []
  const element = (row: DecodeAttentionKernel['key'], n: number): Expr => ({
    kind: 'load',
    type: 'f32',
    tensor: row.tensor,
    indices: [...row.indices.slice(0, -1), i32(n)],
  })
  for (let n = 0; n < batch * s * heads; n++) {
    const here = { b: Math.floor(n / heads / s), i: Math.floor(n / heads) % s, h: n % heads }
    const query = Array.from({ length: d }, (_, c) => at({ ...here, c }, kernel.query))
    const [from, to] = [Math.max(0, at(here, kernel.range.lower)), Math.min(t, at(here, kernel.range.upper))]
    const kept = { h: Math.floor(here.h / shared), owner: here.b }
    const counted: { readonly j: number; readonly score: number }[] = []
    for (let j = from; j < to; j++) {
      const raw = query.reduce((sum, value, c) => sum + value * at({ ...here, ...kept, j }, element(kernel.key, c)), 0)
      const score = at({ ...here, j, raw }, kernel.score)
      if (score >= -1e29) counted.push({ j, score })
    }
    const top = Math.max(...counted.map(({ score }) => score))
    const total = counted.reduce((sum, { score }) => sum + Math.exp(score - top), 0)
    const divisor = counted.length === 0 ? 1 : at({ ...here, total, top }, kernel.denominator)
    for (let c = 0; c < e; c++) {
      let sum = 0
      for (const { j, score } of counted) sum += Math.exp(score - top) * at({ ...here, ...kept, j }, element(kernel.value, c))
      y.push(at({ ...here, c, result: sum / divisor }, kernel.stored))
    }
  }
  return y
}

let host: Host
beforeAll(async () => {
  host = await openKernels([], [...new Set([...kernels, groups, window, long]), stepKernel()])
})
afterAll(() => host?.close())

/** A step that stores its own key and value: each is the place's number of q. */
function stepKernel(): DecodeAttentionKernel {
  const fresh = (tensor: string): Expr => mul(load(tensor, b, h, c), f32(0.5))
  const cache = (name: string, updates: string, dims: string) => ({ ...input(name, dims), access: 'out' as const, updates })
  return kernelOf('shared_step', {
    group: 2,
    queries: i32(1),
    tensors: [
      steps,
      input('own_key', 'b g d'),
      input('own_value', 'b g e'),
      cache('new_k', 'k', 'b g t d'),
      cache('new_v', 'v', 'b g t e'),
    ],
    range: { lower: sub(step, i32(33)), upper: add(step, i32(1)) },
    fresh: {
      place: step,
      key: fresh('own_key'),
      value: fresh('own_value'),
      keyCache: { tensor: 'new_k', indices: [b, h, j, i32(0)] },
      valueCache: { tensor: 'new_v', indices: [b, h, j, i32(0)] },
    },
  })
}

const bound = (dtype: DType, length: number) => {
  const { absolute, relative } = tolerance({ dtype, class: 'attention', length })
  // A stored multiple of a result errs by as much more.
  return (scale: number) => ({ absolute: absolute * scale, relative })
}

async function complaint(kernel: DecodeAttentionKernel, dtype: DType, sizes: Numbers, wanted = kernel): Promise<string> {
  const group = Number(kernel.shared.kind === 'const' ? kernel.shared.value : 1)
  const dims = { b: 2, s: 1, e: sizes.d ?? 0, ...sizes, h: 2 * group, g: 2 }
  const { inputs, outputs } = await launch(
    host,
    kernel,
    host.entry(`${kernel.name}__${dtype}`),
    dims,
    (tensor) => draws[tensor] ?? pattern,
  )
  const expected = attend(wanted, inputs, dims)
  const scale = Math.max(1, ...expected.map(Math.abs))
  const found = compare(outputs[0]?.stored ?? [], expected, bound(dtype, sizes.d ?? 0)(scale))
  return found.passed ? '' : `${JSON.stringify(dims)}: ${found.summary}`
}

describe.each(types)('emitted decode attention in %s', (dtype) => {
  it.each(kernels.map((kernel) => [kernel.name, kernel] as const))('%s', async (_, kernel) => {
    const complaints: string[] = []
    for (const sizes of [
      { t: 1, d: 64 },
      { t: 150, d: 64 },
      { t: 70, s: 2, d: 40, e: 16 },
      { t: 45, d: 20 },
      { t: 90, d: 128 },
      // From some groups on, heads that share keys are computed together.
      { b: 17, t: 45, d: 32 },
    ]) {
      complaints.push(await complaint(kernel, dtype, sizes))
    }
    expect(complaints.filter((text) => text !== '')).toEqual([])
  })

  // Places are divided into segments then, whose sums another kernel puts together.
  it(`${long.name} beyond 1,024 places`, async () => {
    expect(await complaint(long, dtype, { b: 1, t: 1100, d: 8 })).toBe('')
  })

  it.each([2, 17])('a step of %i sequences with shared heads is stored once, and attended by all', async (sequences) => {
    const kernel = stepKernel()
    const dims = { b: sequences, s: 1, t: 70, h: 4, g: 2, d: 64, e: 64 }
    const { inputs, outputs } = await launch(
      host,
      kernel,
      host.entry(`shared_step__${dtype}`),
      dims,
      (tensor) => draws[tensor] ?? pattern,
    )
    const [y, k, v] = ['y', 'new_k', 'new_v'].map((name) => outputs.find(({ tensor }) => tensor.name === name)?.stored ?? [])
    const after = { ...inputs }
    for (const [name, own, stored] of [
      ['k', 'own_key', k],
      ['v', 'own_value', v],
    ] as const) {
      const data = Array.from(inputs[name]?.data ?? [])
      for (const [sequence, place] of Array.from(inputs.steps?.data ?? []).entries()) {
        for (let n = 0; n < 2 * 64; n++) {
          const at = ((sequence * 2 + Math.floor(n / 64)) * 70 + place) * 64 + (n % 64)
          data[at] = 0.5 * (inputs[own]?.data[sequence * 128 + n] ?? 0)
        }
      }
      const expected = roundTo(dtype, data)
      expect(compare(stored ?? [], expected, { absolute: 0, relative: 0 }).summary).toBe(
        compare(expected, expected, { absolute: 0, relative: 0 }).summary,
      )
      after[name] = { data: expected, shape: inputs[name]?.shape ?? [] }
    }
    const found = compare(y ?? [], attend(kernel, after, dims), bound(dtype, 64)(1))
    expect(found.passed ? '' : found.summary).toBe('')
  })
})

it.each(types)('finds a wrong head and a wrong place in %s', async (dtype) => {
  const swapped = call('mod', index('h'), i32(2))
  expect(
    await complaint(groups, dtype, { t: 90, d: 64 }, { ...groups, score: add(groups.score, call('toFloat', mul(swapped, j))) }),
  ).not.toBe('')
  expect(await complaint(window, dtype, { t: 90, d: 64 }, { ...window, range: { lower: i32(0), upper: dim('t') } })).not.toBe('')
})
