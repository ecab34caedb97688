/** Rows multiplied by int8 weights in fixed point: errors of sums stay within the rounding to integers, and NaN stays. */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Check, checks, type Workshop, workshop } from './fixtures.js'

const device = fileURLToPath(new URL('../../native/device', import.meta.url))

let shop: Workshop
let results: ReadonlyMap<string, Check>

beforeAll(async () => {
  shop = await workshop()
  const program = await shop.program('fixed_point', ['fixed_point.cu'], ['-DHEDDLE_SIMT', '-I', device, '-ffp-contract=off'])
  results = await checks(program, [], {})
})

afterAll(() => shop.remove())

test.each(['integers', 'numbers', 'one_far_above', 'large', 'small', 'smallest', 'zeros'])('%s are summed up', (name) => {
  expect(results.get(name)?.values).toEqual([500, 0, 0])
})

test.each(['not_a_number', 'infinite'])('%s makes the sum NaN', (name) => {
  expect(results.get(name)?.values).toEqual([500, 500, 500])
})

test('a bound that is too narrow is found', () => {
  expect(results.get('as_if_exact')?.values[1]).toBeGreaterThan(100)
})
