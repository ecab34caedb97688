/** Choice among the algorithms of a matmul library, on a device that only states their times. */
import { expect, test } from 'vitest'
import { distinctMatmuls } from '../../../src/bench/library/collect.js'
import { type LibraryResult, measureMatmul } from '../../../src/bench/library/measure.js'
import { chosen, leaders } from '../../../src/bench/library/select.js'
import { libraryTable } from '../../../src/bench/library/table.js'
import { summarise } from '../../../src/bench/statistics.js'
import { tunedMatmulSchema } from '../../../src/schedule/tuning/library.js'
import { type FakeAlgorithm, fakeDevice, plainMatmul } from './fake.js'

const measured = (algorithms: readonly FakeAlgorithm[]): Promise<LibraryResult> =>
  measureMatmul({ device: fakeDevice(algorithms), repeats: 10 }, { matmul: plainMatmul([2, 5, 7, 9]), used: ['layer0/fc1'] })

const steady = (milliseconds: number): readonly number[] => [milliseconds, 1.01 * milliseconds]

test('the fastest algorithm is saved with its bytes, the GPU and the version of the library', async () => {
  const { kept, first, best, offered } = await measured([
    { id: 1, times: steady(1) },
    { id: 2, times: steady(0.8) },
    { id: 3, times: steady(0.9) },
  ])
  expect({ offered, first: first?.median, best: best?.median }).toEqual({ offered: 3, first: 1005, best: 804 })
  expect(tunedMatmulSchema.parse(kept)).toMatchObject({
    device: 'a GPU',
    library: 130100,
    matmul: 'f32 x f32 -> f32, 2 x 5 x 7 x 9, a 45 9 1, b 63 9 1, out 35 7 1',
    algorithm: '02'.repeat(64),
    config: 'id 2, tile 0, stages 0, split 1, swizzle 0, custom 0, cluster 0',
    measured: { first: 1010, algorithm: 804 },
  })
})

test('at most the given number of algorithms is measured', async () => {
  const device = fakeDevice([1, 2, 3].map((id) => ({ id, times: steady(1 / id) })))
  const { offered } = await measureMatmul({ device, repeats: 10, most: 2 }, { matmul: plainMatmul([2, 5, 7, 9]), used: [] })
  expect(offered).toBe(2)
})

test('the first algorithm stays if no other is faster by more than the repeatability of measurements', async () => {
  const gains = [1.2, 1, 0.98]
  for (const gain of gains) {
    const { kept, first, best } = await measured([
      { id: 1, times: steady(1) },
      { id: 2, times: steady(gain) },
    ])
    expect(kept).toBeUndefined()
    expect(best).toBe(first)
  }
})

test('a faster median within the noise is not saved', () => {
  const noisy = summarise([0.5, 0.9, 0.9, 1.3, 1.4])
  const first = summarise([0.9, 1, 1, 1.1, 1.1])
  expect(noisy.median).toBeLessThan(0.95 * first.median)
  expect(chosen(first, [noisy])).toBeUndefined()
  expect(chosen(first, [noisy, summarise([0.7, 0.8, 0.8])])).toBe(1)
})

test('an algorithm that computes something else or cannot be run is refused, however fast', async () => {
  const { kept, refused } = await measured([
    { id: 1, times: steady(1) },
    { id: 2, times: steady(0.1), error: 0.5 },
    { id: 3, times: steady(0.1), broken: true },
    { id: 4, times: steady(0.7), error: 1e-7 },
  ])
  expect(kept?.algorithm).toBe('04'.repeat(64))
  expect(refused.map(({ algorithm }) => algorithm.split(',')[0])).toEqual(['id 2', 'id 3'])
  expect(refused[0]?.detail).toContain('70 of 70 elements differ')
  expect(refused[1]?.detail).toBe('the library refuses it')
})

test('a matmul that the library does not take is reported as such', async () => {
  const result = await measured([])
  expect(result).toMatchObject({ offered: 0, first: undefined, kept: undefined })
  expect(libraryTable([result])).toContain('not supported')
})

test('the leading ones are few, the fastest first', () => {
  const times = [5, 3, 4, 1, 2, 6].map((time) => summarise([time]))
  expect(leaders(times)).toEqual([3, 4, 1, 2])
  expect(chosen(summarise([10]), [])).toBeUndefined()
})

test('equal matmuls are measured once, and misaligned ones not at all', () => {
  const matmul = plainMatmul([1, 4, 4, 4])
  const off = { ...matmul, label: 'part', a: { ...matmul.a, offset: 64 } }
  const other = { ...matmul, label: 'fc2', epilogue: { relu: true } }
  expect(distinctMatmuls([matmul, { ...matmul, label: 'query' }, off, other]).map(({ used }) => used)).toEqual([
    ['layer0/fc1', 'query'],
    ['fc2'],
  ])
})

test('a table shows the first time, the best time, and the saved algorithm', async () => {
  const result = await measured([
    { id: 1, times: steady(1) },
    { id: 2, times: steady(0.5) },
  ])
  const table = libraryTable([result])
  expect(table).toContain('2 x 5 x 7 x 9')
  expect(table).toContain('50.0 %')
  expect(table).toContain('id 2, tile 0')
})
