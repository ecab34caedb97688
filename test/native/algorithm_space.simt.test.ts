/** Configurations of a matmul library's algorithms: each one once, plain ones first, and every algorithm among the first. */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Check, checks, type Workshop, workshop } from './fixtures.js'

const cuda = fileURLToPath(new URL('../../native/cuda', import.meta.url))

let shop: Workshop
let results: ReadonlyMap<string, Check>

beforeAll(async () => {
  shop = await workshop()
  results = await checks(await shop.program('algorithm_space', ['algorithm_space.cpp'], ['-I', cuda]), [], {})
})

afterAll(() => shop.remove())

test('the first are plain tiles and stages, and algorithms take turns', () => {
  const first = Array.from({ length: 8 }, (_, i) => results.get(`${i}`)?.values)
  // The algorithm, tile, stages, custom option, swizzle, parts of k, and cluster.
  expect(first).toEqual([
    [0, 15, 7, 0, 0, 1, 0],
    [1, 0, 0, 0, 0, 1, 0],
    [0, 15, 8, 0, 0, 1, 0],
    [0, 18, 7, 0, 0, 1, 0],
    [0, 18, 8, 0, 0, 1, 0],
    [0, 20, 7, 0, 0, 1, 0],
    [0, 20, 8, 0, 0, 1, 0],
    [0, 15, 7, 0, 0, 1, 2],
  ])
})

test('all are distinct, supported, and in the order of their changed parts', () => {
  // Tiles, stages, custom options, swizzles, parts of k and clusters of the first; clusters of the second.
  const every = 3 * 2 * 2 * 2 * 10 * 7 + 7
  expect(results.get('all')?.values).toEqual([every, every, 0, 0])
})
