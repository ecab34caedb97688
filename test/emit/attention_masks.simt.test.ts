/**
 * Masks evaluated tile by tile, and tensors over pairs, as emitted source on the simt device against a plain loop in double precision: whichever
 * tiles are skipped or taken whole, results equal those of the mask pair by pair. Sources that misjudge tiles are found.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { generate } from '../../src/emit/generate.js'
import { call, f32, i32, toFloat } from '../../src/ir/build.js'
import type { DType } from '../../src/ir/dtype.js'
import type { HostTensor } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'
import type { AttentionKernel } from '../../src/ir/template.js'
import { compare } from '../../src/verify/compare.js'
import { tolerance } from '../../src/verify/tolerance.js'
import { attend } from './attention_reference.js'
import { add, attentionKernel, b, h, i, input, j, load, loadInt, number, raw, scaled, select, sub } from './attention_subject.js'
import { type Host, launch, openFiles } from './host.js'

const and = (x: Expr, y: Expr): Expr => call('and', x, y)
const near = (x: Expr, y: Expr, reach: number): Expr => call('le', call('abs', sub(x, y)), i32(reach))
const over = (x: Expr, by: number): Expr => call('idiv', x, i32(by))
const rest = (x: Expr, by: number): Expr => call('mod', x, i32(by))
const masked = (condition: Expr, low = -Infinity): Expr => select(condition, scaled(0.25), number(low))

const ids = [input('own', 'b s', 'i32'), input('other', 'b t', 'i32')]
const sameDocument = call('eq', loadInt('own', b, i), loadInt('other', b, j))
const half: Pick<AttentionKernel, 'types'> = { types: { T: ['f16'] } }
const documents = (name: string): AttentionKernel => attentionKernel(name, { ...half, extra: ids, score: masked(sameDocument) })

const kernels: readonly AttentionKernel[] = [
  attentionKernel('documents', {
    extra: ids,
    range: { lower: i32(0), upper: add(i, i32(40)) },
    score: masked(sameDocument, -1e30),
  }),
  attentionKernel('grid', { ...half, score: masked(and(near(over(i, 7), over(j, 7), 3), near(rest(i, 7), rest(j, 7), 2))) }),
  attentionKernel('mixed', {
    ...half,
    extra: [input('flag', 'b t', 'u8'), input('own', 'b s', 'f32'), input('other', 'b t', 'f32')],
    score: masked(
      call(
        'or',
        and(call('ne', loadInt('flag', b, j), i32(0)), near(i, j, 20)),
        and(call('lt', load('own', b, i), load('other', b, j)), call('gt', toFloat(sub(j, i)), f32(-150.5))),
      ),
    ),
  }),
  // A place that only its guard keeps inside of the tensor is not read for whole tiles.
  attentionKernel('guarded', {
    ...half,
    extra: ids,
    score: masked(and(call('gt', j, i32(0)), call('eq', loadInt('own', b, i), loadInt('other', b, sub(j, i32(1)))))),
  }),
  // A condition on the matmul stays with the score.
  attentionKernel('positive', { ...half, extra: ids, score: masked(and(sameDocument, call('gt', raw, number(0)))) }),
  // Tensors over pairs, which are read eight keys at a time if rows begin at multiples of that.
  attentionKernel('biased', {
    extra: [input('bias', 'h s t')],
    range: { lower: sub(i, i32(60)), upper: add(i, i32(90)) },
    score: add(scaled(0.25), load('bias', h, i, j)),
  }),
  attentionKernel('dense', {
    ...half,
    extra: [input('bias', 'b s t'), ...ids],
    score: masked(and(sameDocument, call('ge', load('bias', b, i, j), number(-0.5)))),
  }),
  // Byte masks, for any score of a removed pair.
  attentionKernel('hidden_bytes', {
    ...half,
    extra: [input('kept', 'b s t', 'u8')],
    range: { lower: i32(0), upper: add(i, i32(120)) },
    score: masked(call('ne', loadInt('kept', b, i, j), i32(0))),
  }),
  attentionKernel('low_bytes', {
    extra: [input('kept', 'b s t', 'bool')],
    score: masked(call('ne', loadInt('kept', b, i, j), i32(0)), -65504),
  }),
  attentionKernel('bytes_as_floats', {
    ...half,
    extra: [input('bias', 'b s t', 'i8')],
    score: add(scaled(0.25), load('bias', b, i, j)),
  }),
  attentionKernel('integers', {
    ...half,
    extra: [input('kept', 'h s t', 'i32')],
    score: masked(call('gt', loadInt('kept', h, i, j), i32(0)), -65504),
  }),
  ...['few_tiles', 'always_open', 'always_shut', 'wrong_rule'].map(documents),
]

/** Changes of the emitted source: the last three misjudge tiles. */
const changes: Readonly<Record<string, (text: string) => string>> = {
  few_tiles: (text) => text.replace('#include', '#define HEDDLE_MOST_KEY_TILES 2\n#include'),
  always_open: (text) =>
    text.replace('heddle::ranges::eq(row_ranges.ints[0], key_ranges.ints[0])', 'heddle::ranges::Truth{true, false}'),
  always_shut: (text) =>
    text.replace('heddle::ranges::eq(row_ranges.ints[0], key_ranges.ints[0])', 'heddle::ranges::Truth{false, true}'),
  wrong_rule: (text) => text.replace('heddle::ranges::eq(', 'heddle::ranges::lt('),
}
const isWrong = (name: string): boolean => name.startsWith('always') || name.startsWith('wrong')

interface Sizes {
  readonly s: number
  readonly t: number
  readonly d: number
}

const draws: Readonly<Record<string, (at: number, dims: Readonly<Record<string, number>>) => number>> = {
  own: (at, { s = 1 }) => Math.floor((at % s) / 37),
  other: (at, { t = 1 }) => Math.floor((at % t) / 37) + (at % t > 170 ? 7 : 0),
  kept: (at) => (at % 7 < 3 || at % 11 === 4 ? 1 : 0),
  flag: (at) => (at % 64 < 50 ? 0 : 1 + (at % 3)),
}
const pattern = (at: number): number => ([3, -5, 1, 7, -2, -8, 4, 6, -1, -3, 8, 2, -6][(at * 5 + (at >> 3)) % 13] ?? 0) / 8

let host: Host
beforeAll(async () => {
  const files = new Map(generate([], {}, kernels))
  for (const [name, change] of Object.entries(changes)) {
    const path = `cuda/${name}__f16.cu`
    const text = files.get(path) ?? ''
    const changed = change(text)
    if (changed === text) throw new Error(`nothing to change in ${path}`)
    files.set(path, changed)
  }
  host = await openFiles(files)
})
afterAll(() => host?.close())

type Draw = (tensor: string) => (at: number, dims: Readonly<Record<string, number>>) => number

/** Description of the first wrong result of a kernel; empty if all are right. The reference reads `known` instead of the inputs. */
async function complaint(
  name: string,
  dtype: DType,
  sizes: Sizes,
  make: Draw = (tensor) => draws[tensor] ?? pattern,
  known: (inputs: Readonly<Record<string, HostTensor>>) => Readonly<Record<string, HostTensor>> = (inputs) => inputs,
): Promise<string> {
  const kernel = kernels.find((each) => each.name === name)
  if (kernel === undefined) throw new Error(`no kernel ${name}`)
  const dims = { b: 2, h: 2, g: 2, e: sizes.d, ...sizes }
  const { inputs, outputs } = await launch(host, kernel, host.entry(`${name}__${dtype}`), dims, make)
  const expected = attend(kernel, known(inputs), dims, dtype)
  const found = compare(Array.from(outputs[0]?.stored ?? []), expected, tolerance({ dtype, class: 'attention', length: sizes.d }))
  return found.passed ? '' : `${JSON.stringify(dims)}: ${found.summary}`
}

const sizes: readonly Sizes[] = [
  { s: 1, t: 3, d: 16 },
  { s: 70, t: 70, d: 20 },
  { s: 133, t: 201, d: 24 },
  { s: 90, t: 200, d: 16 },
]

describe('results are those of the mask pair by pair', () => {
  const right = kernels.filter(({ name }) => !isWrong(name))
  it.each(right.flatMap(({ name, types }) => (types.T ?? []).map((dtype) => [name, dtype] as const)))(
    '%s %s',
    async (name, dtype) => {
      const complaints: string[] = []
      for (const each of sizes) complaints.push(await complaint(name, dtype, each))
      expect(complaints.filter((text) => text !== '')).toEqual([])
    },
  )

  it('a value that is no number counts as nothing that is known', async () => {
    const make: Draw = (tensor) =>
      tensor === 'own'
        ? (at) => (at % 5 === 0 ? Number.NaN : at)
        : tensor === 'other'
          ? (at) => 90 + (at % 7)
          : (draws[tensor] ?? pattern)
    expect(await complaint('mixed', 'f16', { s: 133, t: 201, d: 24 }, make)).toBe('')
  })
})

it('fully masked tiles are not read', async () => {
  // No query attends to the last documents and their values; a weight of 0 would not turn NaN into a number.
  const isNobodys = (key: number): boolean => key >= 128
  const make: Draw = (tensor) => {
    if (tensor === 'own') return () => 0
    if (tensor === 'other') return (at, { t = 1 }) => (isNobodys(at % t) ? 1 : 0)
    if (tensor === 'v') return (at, { t = 1, d = 1 }) => (isNobodys(Math.floor(at / (2 * d)) % t) ? Number.NaN : pattern(at))
    return draws[tensor] ?? pattern
  }
  const numbers = (inputs: Readonly<Record<string, HostTensor>>): Readonly<Record<string, HostTensor>> => {
    const { v } = inputs
    if (v === undefined) throw new Error('no values')
    return { ...inputs, v: { ...v, data: Array.from(v.data, (value) => (Number.isNaN(value) ? 0 : value)) } }
  }
  expect(await complaint('few_tiles', 'f16', { s: 70, t: 256, d: 16 }, make, numbers)).toBe('')
  expect(await complaint('documents', 'f32', { s: 70, t: 300, d: 16 }, make, numbers)).toBe('')
})

it.each(kernels.map(({ name }) => name).filter(isWrong))('%s is found', async (name) => {
  expect(await complaint(name, 'f16', { s: 133, t: 201, d: 24 })).not.toBe('')
})
