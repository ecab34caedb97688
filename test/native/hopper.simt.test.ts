/**
 * The main loops for Hopper on the CPU device, which runs wgmma, the copy engine, phase barriers and clusters: each tile of matmuls, of two matmuls of one
 * left factor, of reduced rows and of int8 is exact on small integers, and attention within the tolerance of its types. A race, a wrong phase or count is an error.
 */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { tolerance, unitRoundoff } from '../../src/verify/tolerance.js'
import { type Check, checks, status, type Workshop, workshop } from './fixtures.js'

const device = fileURLToPath(new URL('../../native/device', import.meta.url))
const flags = ['-DHEDDLE_SIMT', '-DHEDDLE_SIMT_HOPPER', '-I', device, '-O1', '-ffp-contract=off', '-Wno-unknown-pragmas']

let shop: Workshop

beforeAll(async () => {
  shop = await workshop()
})

afterAll(() => shop.remove())

const build = (name: string): Promise<string> => shop.program(name, [`${name}.cu`], flags)

const failed = (results: ReadonlyMap<string, Check>): Check[] =>
  [...results.values()].filter((check) => check.status !== status.ok || check.values[1] !== 0)

const tilesOf = (results: ReadonlyMap<string, Check>): string[] => [
  ...new Set([...results.keys()].map((name) => name.replace(/(_\d+x\d+x\d+(x\d+)?)$/, ''))),
]

describe('a matmul', () => {
  let program: string
  beforeAll(async () => {
    program = await build('matmul_hopper')
  })

  test('is exact with every tile and split', async () => {
    const results = await checks(program, [], { HEDDLE_SIMT_ORDER: 'forward', HEDDLE_SIMT_RACE: '1' })
    expect(failed(results)).toEqual([])
    const singles = ['single_128x64', 'single_128x96', 'single_128x128'].map((tile) => `${tile}_1`)
    const pairs = [128, 160, 192].flatMap((columns) => [`pair_128x${columns}_1`, `turns_128x${columns}_1`])
    const clusters = ['64x64_2', '64x64_4', '64x96_2', '64x96_3', '64x96_6'].map((tile) => `cluster_${tile}`)
    const mma = ['64x32_deep', '64x32', '64x64', '128x96'].flatMap((tile) => [`mma_${tile}_1`, `mma_${tile}_3`])
    const tall = ['128x128_2', '128x128_4', '256x128_1', '256x128_2'].map((tile) => `tall_${tile}`)
    const expected = [...singles, ...pairs, 'pair_128x128_2', 'pair_128x160_2', ...clusters, ...mma, ...tall]
    expect(tilesOf(results).sort()).toEqual(expected.sort())
  })

  test.each(['reverse', 'shuffle'])('does not depend on the order of threads and copies: %s', async (order) => {
    const results = await checks(program, ['small'], { HEDDLE_SIMT_ORDER: order })
    expect(results.size).toBe(17)
    expect(failed(results)).toEqual([])
  })
})

describe.each([
  { name: 'products_hopper', cases: 8, wrong: [['row_missing_9x32x72', 32]] },
  { name: 'int8_hopper', cases: 8, wrong: [] },
  { name: 'reduced_hopper', cases: 14, wrong: [['rows_missing_140x40x72', 4]] },
])('$name', ({ name, cases, wrong }) => {
  let program: string
  beforeAll(async () => {
    program = await build(name)
  })

  test.each(['forward', 'reverse', 'shuffle'])('is exact in %s order', async (order) => {
    const results = await checks(program, [], { HEDDLE_SIMT_ORDER: order })
    expect(results.size).toBe(cases)
    expect(failed(results).map(({ name: found, values }) => [found, values[1]])).toEqual(wrong)
  })
})

// As in attention.simt.test.ts.
const bounds = (['f16', 'bf16', 'f32'] as const).flatMap((dtype) => {
  const score = tolerance({ dtype: 'f32', class: 'matmul', length: 300 })
  const sum = tolerance({ dtype, class: 'reduction', length: 330 })
  return [String(score.absolute + sum.absolute + unitRoundoff[dtype]), String(sum.relative)]
})

describe('attention', () => {
  let program: string
  beforeAll(async () => {
    program = await build('attention_hopper')
  })

  test.each(['forward', 'shuffle'])('is within the tolerance in %s order', async (order) => {
    const results = await checks(program, bounds.slice(0, 4), { HEDDLE_SIMT_ORDER: order })
    expect(results.size).toBe(6)
    expect(failed(results)).toEqual([])
    expect([...results.values()].map(({ values }) => values[2])).toEqual(Array.from({ length: 6 }, () => 0))
  })
})

describe('decode attention', () => {
  let program: string
  beforeAll(async () => {
    program = await build('attention_decode')
  })

  test.each(['forward', 'reverse', 'shuffle'])('with clusters has the bits of one block in %s order', async (order) => {
    const results = await checks(program, bounds, { HEDDLE_SIMT_ORDER: order })
    expect(results.size).toBe(4)
    expect(failed(results)).toEqual([])
  })
})
