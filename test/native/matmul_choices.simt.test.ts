/**
 * The choice of a matmul's tile on Hopper: prices replace a tile of the rules where another one is faster by a tenth, and leave few rows, ragged columns
 * and close calls to the rules.
 */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Check, checks, type Workshop, workshop } from './fixtures.js'

const device = fileURLToPath(new URL('../../native/device', import.meta.url))

/** m, n, k; what the rules choose in 16 bits; what is chosen. */
const cases: readonly (readonly [readonly [number, number, number], string, string])[] = [
  [[400, 14336, 4096], 'turns_128x160_1', 'tall_256x128_1'],
  [[1600, 2000, 2000], 'turns_128x128_1', 'tall_256x128_1'],
  [[600, 768, 3072], 'cluster_64x96_2', 'tall_128x128_4'],
  [[200, 768, 3072], 'cluster_64x96_3', 'cluster_64x96_3'],
  [[8192, 768, 3072], 'turns_128x192_1', 'turns_128x192_1'],
  [[512, 4096, 1024], 'pair_128x128_1', 'pair_128x128_1'],
  // Few rows, and columns that fill no chunk.
  [[64, 14336, 4096], 'mma_64x64_1', 'mma_64x64_1'],
  [[400, 14331, 4096], 'turns_128x128_1', 'turns_128x128_1'],
]

let shop: Workshop
let results: ReadonlyMap<string, Check>
beforeAll(async () => {
  shop = await workshop()
  const flags = ['-DHEDDLE_SIMT', '-DHEDDLE_SIMT_HOPPER', '-I', device, '-O0', '-Wno-unknown-pragmas']
  const program = await shop.program('matmul_choices', ['matmul_choices.cu'], flags)
  const sizes = [...cases.map(([size]) => size), [400, 4096, 64]]
  results = await checks(program, sizes.flat().map(String), {})
})
afterAll(() => shop.remove())

test.each(cases)('%j: %s, then %s', (size, ruled, chosen) => {
  expect(results.get(`f16_${size.join('x')}`)?.message).toBe(`${ruled} ${chosen}`)
})

test('float32 has tiles of multiply-adds, and k is divided where too few blocks would run', () => {
  expect(results.get('f32_200x768x3072')?.message).toMatch(/^(fma_\d+x\d+_[248]) \1$/)
  expect(results.get('f32_8192x768x3072')?.message).toBe('fma_128x128_1 fma_128x128_1')
})

test('shared memory keeps blocks evenly apart: one more than its share does not fit a multiprocessor', () => {
  const [multiprocessors, all, ofSystem] = [132, 228 * 1024, 1024]
  for (const blocks of [16, 98, 128, 132, 133, 200, 256, 300, 396, 397]) {
    const [bytes, fills] = (results.get(`share_${blocks}`)?.values ?? []).map(Number)
    const share = Math.ceil(blocks / multiprocessors)
    if (share > 3) expect(bytes, `${blocks} blocks`).toBe(1000)
    else expect(Math.floor(all / ((bytes ?? 0) + ofSystem)), `${blocks} blocks`).toBe(share)
    expect(fills, `${blocks} blocks`).toBe(blocks >= 0.75 * share * multiprocessors ? 1 : 0)
  }
})

test('blocks do not divide a k of one step', () => {
  expect(results.get('f16_400x4096x64')?.values).toEqual([0])
  expect(results.get('f16_400x14336x4096')?.values).toEqual([1])
})
