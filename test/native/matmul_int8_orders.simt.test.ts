/**
 * The int8 matmul of interleaved orders on the CPU device: exact for every pair of orders, with tails in every direction, garbage in all padding
 * and several matrices, through the function that generated source calls and through each tile; in every order of threads.
 */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Check, checks, status, type Workshop, workshop } from './fixtures.js'

const device = fileURLToPath(new URL('../../native/device', import.meta.url))

let shop: Workshop
let program: string

beforeAll(async () => {
  shop = await workshop()
  program = await shop.program('matmul_int8_orders', ['matmul_int8_orders.cu'], ['-DHEDDLE_SIMT', '-I', device])
})

afterAll(() => shop.remove())

const pairs = ['row', 'col32'].flatMap((a) => ['row', 'col32', 'col4', 'two_row'].map((b) => `${a}_${b}`))
const faulty = ['term_too_many', 'padding_counts', 'rows_unwritten', 'other_order']

describe.each([
  { HEDDLE_SIMT_ORDER: 'forward', HEDDLE_SIMT_RACE: '1' },
  { HEDDLE_SIMT_ORDER: 'reverse' },
  { HEDDLE_SIMT_ORDER: 'shuffle' },
])('with %o', (env) => {
  let results: ReadonlyMap<string, Check>
  beforeAll(async () => {
    results = await checks(program, [], env)
  })

  const wrong = (name: string): number => results.get(name)?.values[1] ?? 0

  test.each(pairs)('%s is exact', (pair) => {
    const of = [...results.values()].filter(({ name }) => name.startsWith(`${pair}_`) && /_\d/.test(name))
    expect(of.length).toBeGreaterThan(26)
    expect(of.filter((check) => check.status !== status.ok || check.values[1] !== 0)).toEqual([])
  })

  test('sums may be as long as int32 allows and no longer', () => {
    for (const name of ['longest_1x1x1x133144', 'longest_simple_1x1x1x133144']) {
      expect(results.get(name)).toEqual({ name, status: status.ok, message: '', values: [1, 0] })
    }
    const refused = results.get('too_long_1x1x1x133145')
    expect(refused?.status).toBe(status.invalid)
    expect(refused?.message).toBe('kernel body: k is 133145; int32 holds sums of at most 133144 products of int8')
  })

  test('no rows are no work', () => expect(results.get('empty_1x0x8x8')?.values).toEqual([0, 0]))

  test.each(faulty)('%s is found', (name) => {
    expect(wrong(`${name}_1x17x33x40`)).toBeGreaterThanOrEqual(name === 'rows_unwritten' ? 33 : 400)
  })
})
