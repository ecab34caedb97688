/**
 * Decode attention on the CPU device: every type, head size and step against a loop in double precision, in every order of threads
 * and with outputs watched. Places that are not decoded yet are NaN, and none of a cache but the place of the step may change.
 */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { tolerance, unitRoundoff } from '../../src/verify/tolerance.js'
import { type Check, checks, status, type Workshop, workshop } from './fixtures.js'

const device = fileURLToPath(new URL('../../native/device', import.meta.url))

let shop: Workshop
let program: string

beforeAll(async () => {
  shop = await workshop()
  program = await shop.program('decode', ['attention_decode.cu'], ['-DHEDDLE_SIMT', '-I', device, '-ffp-contract=off'])
})

afterAll(() => shop.remove())

/** Errors relative to the sum of the magnitudes of weighted values, as in attention.simt.test.ts. */
const bounds = (['f16', 'bf16', 'f32'] as const).flatMap((dtype) => {
  const score = tolerance({ dtype: 'f32', class: 'matmul', length: 300 })
  const sum = tolerance({ dtype, class: 'reduction', length: 100 })
  return [String(score.absolute + sum.absolute + unitRoundoff[dtype]), String(sum.relative)]
})

const names = [
  ...['f16', 'bf16', 'f32'].flatMap((type) =>
    [32, 64, 128, 26, 80, 300].flatMap((size) =>
      [...[0, 1, 7, 8, 31, 99].map((step) => `step_${step}`), 'queries_1', 'queries_3'].map((rows) => `${type}_${size}_${rows}`),
    ),
  ),
  ...['unaligned_64', 'long_64', 'longest_whole_64', 'shortest_split_64', 'long_80', 'long_memory_32'],
  ...['128', '64', 'few', 'none', 'split'].map((name) => `own_${name}`),
  ...['64', '128', 'split', '32', 'f32'].map((name) => `shared_${name}`),
]

const environments: Record<string, Record<string, string>> = {
  forward: { HEDDLE_SIMT_RACE: '1' },
  reverse: { HEDDLE_SIMT_ORDER: 'reverse' },
  shuffle: { HEDDLE_SIMT_ORDER: 'shuffle' },
}

describe.each(Object.entries(environments))('in %s order', (_, env) => {
  let results: ReadonlyMap<string, Check>
  beforeAll(async () => {
    results = await checks(program, bounds, env)
  })

  test.each(names)('%s', (name) => {
    const check = results.get(name)
    expect(check).toMatchObject({ status: status.ok, message: '', values: [expect.any(Number), 0, 0] })
    expect(check?.values[0]).toBeGreaterThan(0)
  })

  test.each(['capacities_whole', 'capacities_split'])('%s: no bit depends on how large the caches are', (name) => {
    const check = results.get(name)
    expect(check).toMatchObject({ status: status.ok, message: '', values: [expect.any(Number), 0, 0] })
    expect(check?.values[0]).toBeGreaterThan(0)
  })

  test.each(['divisions_f16', 'divisions_f32', 'divisions_split'])(
    '%s: no bit depends on how many warps divide the places',
    (name) => {
      const check = results.get(name)
      expect(check).toMatchObject({ status: status.ok, message: '', values: [expect.any(Number), 0, 0] })
      expect(check?.values[0]).toBeGreaterThan(0)
    },
  )

  test.each(['both_128', 'both_split', 'ahead_128', 'ahead_split'])(
    '%s: bits do not depend on how keys and values are loaded',
    (name) => {
      const check = results.get(name)
      expect(check).toMatchObject({ status: status.ok, message: '', values: [expect.any(Number), 0, 0] })
      expect(check?.values[0]).toBeGreaterThan(0)
    },
  )

  test.each(['own_one_less', 'shared_one_more', 'one_step_less', 'table_ignored', 'own_fresh_row', 'one_place_more'])(
    '%s is found',
    (name) => {
      const check = results.get(name)
      expect(check).toMatchObject({ status: status.ok, message: '' })
      expect(check?.values[1]).toBeGreaterThan(0)
    },
  )

  test('an extra step reads the table where it has no row, and is found', () => {
    expect(results.get('one_step_more')).toMatchObject({
      status: status.fault,
      message: expect.stringContaining('out of bounds'),
    })
  })

  test('a key stored at another place is found', () => {
    expect(results.get('stored_elsewhere')?.values[2]).toBeGreaterThan(0)
  })

  test('a step beyond the cache stores nothing', () => {
    expect(results.get('beyond_the_cache')).toMatchObject({ status: status.ok, message: '' })
    expect(results.get('beyond_the_cache')?.values[2]).toBe(0)
  })

  test('heads beyond 1024 elements are refused', () => {
    expect(results.get('too_wide')).toMatchObject({
      status: status.invalid,
      message: 'kernel too_wide: expected heads of 1 to 1024 elements, got 1025',
    })
  })
})
