/**
 * Attention that stores int8, on the CPU device: every operand type, head size and body, in every order of threads, equals the float result of the
 * same body multiplied, rounded and saturated. Rows outside of all sequences are stored like a result of zero.
 */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Check, checks, status, type Workshop, workshop } from './fixtures.js'

const device = fileURLToPath(new URL('../../native/device', import.meta.url))

let shop: Workshop
let program: string

beforeAll(async () => {
  shop = await workshop()
  program = await shop.program('attention_stored', ['attention_stored.cu'], ['-DHEDDLE_SIMT', '-I', device, '-ffp-contract=off'])
})

afterAll(() => shop.remove())

const names = [
  ...['f16', 'bf16', 'f32'].flatMap((type) =>
    [32, 64, 128, 26, 80, 300].flatMap((size) => ['packed', 'padded'].map((rows) => `${type}_${size}_${rows}`)),
  ),
  ...['unaligned_64', 'offset_tiles', 'offset_rows'],
]

const environments: Record<string, Record<string, string>> = {
  forward: { HEDDLE_SIMT_RACE: '1' },
  reverse: { HEDDLE_SIMT_ORDER: 'reverse' },
  shuffle: { HEDDLE_SIMT_ORDER: 'shuffle' },
}

describe.each(Object.entries(environments))('in %s order', (_, env) => {
  let results: ReadonlyMap<string, Check>
  beforeAll(async () => {
    results = await checks(program, [], env)
  })

  test.each(names)('%s is the rounded float result', (name) => {
    const check = results.get(name)
    expect(check).toMatchObject({ status: status.ok, message: '', values: [expect.any(Number), 0, 0, expect.any(Number)] })
    expect(check?.values[0]).toBeGreaterThan(0)
    expect(check?.values[3]).toBeGreaterThan(0)
  })

  test.each(['wrong_step_tiles', 'wrong_step_rows', 'one_row_less_tiles', 'one_row_less_rows'])('%s is found', (name) => {
    const check = results.get(name)
    expect(check).toMatchObject({ status: status.ok, message: '' })
    expect(check?.values[1]).toBeGreaterThan(0)
  })
})
