/**
 * Fused attention on the CPU device: every type, head size and body against a loop in double precision, in every order of threads and with
 * monitored outputs. Rows beyond a sequence's queries must be zero, rows outside of all sequences untouched.
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
  program = await shop.program('attention', ['attention.cu'], ['-DHEDDLE_SIMT', '-I', device, '-ffp-contract=off'])
})

afterAll(() => shop.remove())

/**
 * Errors relative to the sum of the magnitudes of weighted values. A score of magnitude-1 terms has the error of a dot product, and its weight the
 * same relative error; weights are rounded to storage and added up.
 */
const bounds = (['f16', 'bf16', 'f32'] as const).flatMap((dtype) => {
  const score = tolerance({ dtype: 'f32', class: 'matmul', length: 300 })
  const sum = tolerance({ dtype, class: 'reduction', length: 100 })
  return [String(score.absolute + sum.absolute + unitRoundoff[dtype]), String(sum.relative)]
})

const run = (env: Record<string, string>): Promise<ReadonlyMap<string, Check>> => checks(program, bounds, env)

const names = [
  ...['f16', 'bf16', 'f32'].flatMap((type) =>
    [32, 64, 128, 26, 80, 13].flatMap((size) => ['packed', 'padded'].map((rows) => `${type}_${size}_${rows}`)),
  ),
  ...['unaligned_64', 'f32_300_packed'],
  ...['tile_128x64_of_64', 'tile_128x64_of_128', 'tile_64x32_of_32', 'tile_64x32_of_128', 'tile_64x128_of_64'],
]

const environments: Record<string, Record<string, string>> = {
  forward: { HEDDLE_SIMT_RACE: '1' },
  reverse: { HEDDLE_SIMT_ORDER: 'reverse' },
  shuffle: { HEDDLE_SIMT_ORDER: 'shuffle' },
}

describe.each(Object.entries(environments))('in %s order', (_, env) => {
  let results: ReadonlyMap<string, Check>
  beforeAll(async () => {
    results = await run(env)
  })

  test.each(names)('%s', (name) => {
    const check = results.get(name)
    expect(check).toMatchObject({ status: status.ok, message: '', values: [expect.any(Number), 0, 0] })
    expect(check?.values[0]).toBeGreaterThan(0)
  })

  test.each(['tile_of_other_heads', 'tile_unaligned'])('%s is refused', (name) => {
    const check = results.get(name)
    expect(check).toMatchObject({ status: status.invalid })
    expect(check?.message).toContain('the tile for heads of 64 cannot compute heads of')
  })

  test.each(['tiles', 'parts', 'rows'].flatMap((loop) => [`one_key_more_${loop}`, `one_row_less_${loop}`]))(
    '%s is found',
    (name) => {
      const check = results.get(name)
      expect(check).toMatchObject({ status: status.ok, message: '' })
      expect(check?.values[1]).toBeGreaterThan(0)
    },
  )

  test('heads beyond 1024 elements are refused', () => {
    expect(results.get('too_wide')).toMatchObject({
      status: status.invalid,
      message: 'kernel too_wide: expected heads of 1 to 1024 elements, got 1025',
    })
  })
})
