/**
 * CPU twins of the tensor-core wrappers: fragments in, out and transposed as the hardware lays them out, copies that arrive when
 * they are waited for, and one line for each misuse. Every working case runs in every order of threads.
 */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Check, checks, status, type Workshop, workshop } from './fixtures.js'

const device = fileURLToPath(new URL('../../native/device', import.meta.url))

let shop: Workshop
let plugin: string
let driver: string

beforeAll(async () => {
  shop = await workshop()
  plugin = await shop.plugin()
  driver = await shop.program('driver', ['driver.cpp', 'mma.cu'], ['-DHEDDLE_SIMT', '-I', device])
})

afterAll(() => shop.remove())

const run = (cases: 'working' | 'failing', env: Record<string, string> = {}): Promise<ReadonlyMap<string, Check>> =>
  checks(driver, [plugin, cases], env)

/** Input values of the driver. */
const inputValue = (i: number): number => ((i * 5) % 7) - 3

/** Twice the product of the 16 x 16 input with one whose element (k, n) is at `place`. */
const product = (place: (k: number, n: number) => number): number[] =>
  Array.from({ length: 128 }, (_, at) => {
    const [row, n] = [Math.floor(at / 8), at % 8]
    const terms = Array.from({ length: 16 }, (_, k) => inputValue(row * 16 + k) * inputValue(place(k, n)))
    return 2 * terms.reduce((a, b) => a + b, 0)
  })

/** `first` plus twice the product of the 16 x 32 input with the transpose of the 8 x 32 one, as int32 that wraps around. */
const productInt8 = (scale: number, first = 0): number[] => {
  const byte = (i: number): number => Math.max(-128, Math.min(127, inputValue(i) * scale))
  return Array.from({ length: 128 }, (_, at) => {
    const terms = Array.from({ length: 32 }, (_, k) => byte(Math.floor(at / 8) * 32 + k) * byte((at % 8) * 32 + k))
    return (first + 2 * terms.reduce((a, b) => a + b, 0)) | 0
  })
}

/** 48 copied floats, with zeros where a copy is not valid; copies in flight have not arrived. */
const copied = (arrived: number): (number | null)[] =>
  Array.from({ length: 48 }, (_, i) => (i >= arrived ? null : i >= 8 && i < 12 ? 0 : inputValue(i)))

describe.each(['forward', 'reverse', 'shuffle'])('in %s order', (order) => {
  let results: ReadonlyMap<string, Check>
  beforeAll(async () => {
    results = await run('working', { HEDDLE_SIMT_ORDER: order })
  })

  const expected: Record<string, (number | null)[]> = {
    product_f16: product((k, n) => n * 16 + k),
    product_bf16: product((k, n) => n * 16 + k),
    product_f16_transposed: product((k, n) => k * 8 + n),
    product_bf16_transposed: product((k, n) => k * 8 + n),
    product_int8: productInt8(1),
    product_int8_extremes: productInt8(64),
    product_int8_wraps: productInt8(1, 2 ** 31 - 1),
    copies: copied(48),
    copies_one_pending: copied(32),
  }
  test.each(Object.entries(expected))('%s', (name, values) => {
    expect(results.get(name)).toEqual({ name, status: status.ok, message: '', values })
  })
})

test('a matmul of other operands is found', () => {
  const wrong = productInt8(2).filter((value, i) => value !== productInt8(1)[i])
  expect(wrong.length).toBeGreaterThan(100)
  expect(productInt8(1, 2 ** 31 - 1).some((value) => value < 0)).toBe(true)
})

describe('refusals', () => {
  const refusals: Record<string, RegExp> = {
    copies_no_barrier:
      /data race: shared 16-byte word\[\d+\] is written here and was read by thread \(\d,0,0\) with no barrier between/,
    copies_short_input: /read of x\[44\.\.47\] is out of bounds \(47 elements\)/,
    early_exit:
      /warp divergence in block \(0,0,0\), warp 0: lanes 0xffffffdf wait at mma\.cu:\d+ .* lanes 0x00000020 have exited$/,
    early_exit_int8:
      /warp divergence in block \(0,0,0\), warp 0: lanes 0xffffffdf wait at mma\.cu:\d+ .* lanes 0x00000020 have exited$/,
    beyond: /dynamic shared byte 4096 is not a place for 16 bytes \(4096 bytes\)/,
    misaligned: /dynamic shared byte 8 is not a place for 16 bytes \(4096 bytes\)/,
    undeclared: /dynamic shared memory is declared but the launch gives none/,
    too_large: /232449 bytes of dynamic shared memory, expected at most 232448$/,
  }
  let results: ReadonlyMap<string, Check>
  beforeAll(async () => {
    results = await run('failing', { HEDDLE_SIMT_THREADS: '1' })
  })
  test.each(Object.entries(refusals))('%s', (name, message) => {
    const check = results.get(name)
    expect(check?.status).toBe(name === 'too_large' ? status.invalid : status.fault)
    expect(check?.message).toMatch(message)
  })
})

test.each(['working', 'failing'] as const)('%s kernels leak no memory', async (cases) => {
  // The allocator counts its per-thread cache as in use.
  const results = await run(cases, { HEDDLE_SIMT_THREADS: '1', GLIBC_TUNABLES: 'glibc.malloc.tcache_count=0' })
  expect(results.get('leaked')?.values).toEqual([0])
})
