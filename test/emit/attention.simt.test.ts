/**
 * Emitted attention on the simt device against a plain loop in double precision: ranges of keys, scores that mask, grouped heads, denominators,
 * values of another size, rows computed on load, and transformed results.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { call, dim, f32, i32, local } from '../../src/ir/build.js'
import type { DType } from '../../src/ir/dtype.js'
import type { Expr } from '../../src/ir/expr.js'
import type { AttentionKernel } from '../../src/ir/template.js'
import { compare } from '../../src/verify/compare.js'
import { tolerance } from '../../src/verify/tolerance.js'
import { oneInTurn } from '../turns.js'
import { attend } from './attention_reference.js'
import {
  add,
  attentionKernel,
  b,
  c,
  distance,
  h,
  i,
  input,
  j,
  load,
  loadInt,
  mul,
  number,
  raw,
  result,
  scaled,
  select,
  sub,
} from './attention_subject.js'
import { type Host, launch, openKernels } from './host.js'

const next = add(i, i32(1))
const causal = { lower: i32(0), upper: next }
const half = call('idiv', dim('d'), i32(2))

/** A rotation by halves: element c meets the one half a head away. */
function rotated(tensor: string, row: Expr): Expr {
  const partner = select(call('lt', c, half), add(c, half), sub(c, half))
  const sign = select(call('lt', c, half), number(-1), number(1))
  const at = (column: Expr): Expr => load(tensor, b, row, h, column)
  return add(mul(at(c), load('cosines', row, c)), mul(mul(sign, at(partner)), load('sines', row, c)))
}

/** Divided by the root of the mean square of a head. */
function normed(tensor: string, row: Expr): Expr {
  const of = load(tensor, b, row, h, { kind: 'index', type: 'i32', name: 'r' })
  const squares: Expr = { kind: 'fold', type: 'f32', monoid: 'sum', length: dim('d'), index: 'r', value: mul(of, of) }
  return mul(load(tensor, b, row, h, c), call('rsqrt', add(call('div', squares, dim('d')), f32(0.01))))
}

const tables = [input('cosines', 't d', 'f32'), input('sines', 't d', 'f32')]

// Some inputs have the names of slots and of names inside them, which must not collide.
const kernels: readonly AttentionKernel[] = [
  attentionKernel('plain_scores'),
  attentionKernel('causal_groups', { range: causal, group: 2 }),
  attentionKernel('window', { range: { lower: sub(i, i32(40)), upper: next } }),
  attentionKernel('ahead', { range: { lower: add(i, i32(3)), upper: add(i, i32(70)) } }),
  attentionKernel('ragged', {
    extra: [input('lengths', 'b', 'i32')],
    range: { lower: i32(-5), upper: loadInt('lengths', b) },
    queryCount: loadInt('lengths', b),
  }),
  attentionKernel('masked_by_score', { score: select(call('lt', j, i), number(-1e30), scaled(0.25)) }),
  attentionKernel('masked_by_infinity', { score: select(call('gt', j, i), number(-Infinity), scaled(0.25)) }),
  attentionKernel('added_mask', { score: add(scaled(0.25), select(call('lt', j, i), number(-3.4028234663852886e38), f32(0))) }),
  attentionKernel('large_scores', { score: add(mul(raw, f32(4096)), f32(-1e9)) }),
  attentionKernel('large_and_small', { score: add(scaled(0.25), select(call('lt', j, i32(50)), number(-1e9), f32(0))) }),
  attentionKernel('alibi_cap', {
    extra: [input('raw', 'h', 'f32')],
    score: add(mul(call('tanh', call('div', raw, f32(8))), f32(4)), mul(load('raw', h), mul(distance, f32(0.0625)))),
  }),
  attentionKernel('sink', {
    extra: [input('upper', 'h', 'f32')],
    range: causal,
    denominator: add(local('total'), call('exp', sub(load('upper', h), local('top')))),
  }),
  attentionKernel('one_more', { denominator: add(local('total'), call('exp', call('neg', local('top')))) }),
  attentionKernel('stored_with_gate', {
    extra: [input('valid', 'b s h e')],
    range: causal,
    stored: mul(result, load('valid', b, i, h, c)),
    stores: 'f32',
  }),
  attentionKernel('rotated', {
    extra: tables,
    range: causal,
    query: { tensor: 'q', indices: [b, i, h, i32(0)], element: rotated('q', i) },
    key: { tensor: 'k', indices: [b, j, h, i32(0)], element: rotated('k', j) },
  }),
  attentionKernel('normed', {
    query: { tensor: 'q', indices: [b, i, h, i32(0)], element: normed('q', i) },
    key: { tensor: 'k', indices: [b, j, h, i32(0)], element: normed('k', j) },
    value: { tensor: 'v', indices: [b, j, h, i32(0)], element: mul(load('v', b, j, h, c), f32(0.5)) },
  }),
  attentionKernel('gathered', {
    extra: [input('table', 't', 'i32')],
    key: { tensor: 'k', indices: [b, loadInt('table', j), h, i32(0)] },
    value: { tensor: 'v', indices: [b, loadInt('table', j), h, i32(0)] },
  }),
]

interface Sizes {
  readonly b?: number
  readonly s: number
  readonly t?: number
  readonly h?: number
  readonly d: number
  readonly e?: number
}

const draws: Readonly<Record<string, (at: number, dims: Readonly<Record<string, number>>) => number>> = {
  lengths: (at, { s = 1, t = 1 }) => Math.min(s, t) - 7 * at,
  table: (at, { t = 1 }) => (at * 7 + 3) % t,
  raw: (at) => 0.5 ** (at + 1),
  upper: (at) => at - 1,
}
const pattern = (at: number): number => ([3, -5, 1, 7, -2, -8, 4, 6, -1, -3, 8, 2, -6][(at * 5 + (at >> 3)) % 13] ?? 0) / 8

/** The storage type whose turn it is. */
const types = [oneInTurn(['f16', 'f32'] as const, 1)]

let host: Host
beforeAll(async () => {
  // Heads of every size are tried in f16.
  const both = ['causal_groups', 'window']
  host = await openKernels(
    [],
    kernels.map((kernel) => ({ ...kernel, types: { T: both.includes(kernel.name) ? ['f16', 'f32'] : types } })),
  )
})
afterAll(() => host?.close())

/** Description of the first wrong result of a kernel; empty if all are right. */
async function complaint(name: string, dtype: DType, sizes: Sizes, expectedOf?: AttentionKernel): Promise<string> {
  const kernel = kernels.find((each) => each.name === name)
  if (kernel === undefined) throw new Error(`no kernel ${name}`)
  const heads = sizes.h ?? 2
  const groups = name === 'causal_groups' ? heads / 2 : heads
  const dims = { b: 2, t: sizes.s, e: sizes.d, ...sizes, h: heads, g: groups }
  const { inputs, outputs } = await launch(
    host,
    kernel,
    host.entry(`${name}__${dtype}`),
    dims,
    (tensor) => draws[tensor] ?? pattern,
  )
  const expected = attend(expectedOf ?? kernel, inputs, dims, dtype)
  const [output] = outputs
  if (output === undefined) throw new Error('no output')
  // Weights are rounded to storage, whatever the type of results.
  const bounds = [dtype, output.dtype].map((each) => tolerance({ dtype: each, class: 'attention', length: sizes.d }))
  const bound = {
    absolute: Math.max(...bounds.map((each) => each.absolute)),
    relative: Math.max(...bounds.map((each) => each.relative)),
  }
  const stored = Array.from(output.stored).filter((_, at) => !Number.isNaN(expected[at]))
  const found = compare(
    stored,
    expected.filter((each) => !Number.isNaN(each)),
    bound,
  )
  return found.passed ? '' : `${JSON.stringify(dims)}: ${found.summary}`
}

describe.each(types)('emitted attention in %s', (dtype) => {
  it.each(kernels.map(({ name }) => name))('%s', async (name) => {
    const complaints: string[] = []
    for (const sizes of [
      { s: 1, d: 16 },
      { s: 33, t: 70, d: 64 },
      { s: 130, d: 32, e: 16 },
      { s: 70, d: 20 },
    ] satisfies Sizes[]) {
      complaints.push(await complaint(name, dtype, sizes))
    }
    expect(complaints.filter((text) => text !== '')).toEqual([])
  })
})

it.each([8, 10, 13, 24, 40, 50, 72, 80, 96, 104, 112, 128, 160, 192, 200, 250, 256, 264])('heads of %i elements', async (d) => {
  const complaints = [
    await complaint('causal_groups', 'f16', { s: 70, d, b: 1 }),
    await complaint('window', 'f16', { s: 66, d: Math.max(d - 8, 8), e: d, b: 1 }),
  ]
  expect(complaints.filter((text) => text !== '')).toEqual([])
})

it.each(types)('finds a wrong range, a wrong denominator and a wrong row in %s', async (dtype) => {
  const by = (name: string, change: Partial<AttentionKernel>): Promise<string> => {
    const kernel = kernels.find((each) => each.name === name)
    if (kernel === undefined) throw new Error(`no kernel ${name}`)
    return complaint(name, dtype, { s: 70, d: 32 }, { ...kernel, ...change })
  }
  expect(await by('causal_groups', { range: { lower: i32(0), upper: i } })).not.toBe('')
  expect(await by('sink', { denominator: local('total') })).not.toBe('')
  expect(await by('rotated', { key: { tensor: 'k', indices: [b, j, h, i32(0)] } })).not.toBe('')
})
