/** The extents that passes over prompts are computed with. */
import { expect, it } from 'vitest'
import { passesOf, passShape } from '../../src/models/llama/passes.js'

const run = (length: number, row = 0) => ({ row, first: 0, ids: Array.from({ length }, () => 1) })

it.each([
  [1, 8],
  [8, 8],
  [9, 16],
  [17, 24],
  [129, 160],
  [513, 640],
  [1024, 1024],
  [1100, 1280],
  [2048, 2048],
])('%s tokens are computed as %s', (tokens, extent) => {
  expect(passShape([run(tokens)], 2048).tokens).toBe(extent)
  expect(extent).toBeLessThan(Math.max(tokens * 1.25 + 8, 9))
})

it('no pass is computed as more tokens than it may have, or as fewer than it has', () => {
  for (const most of [1, 7, 100, 512]) {
    for (const pass of passesOf([run(60), run(333, 1), run(1, 2)], most)) {
      const tokens = pass.reduce((sum, { ids }) => sum + ids.length, 0)
      const shape = passShape(pass, most)
      expect(tokens).toBeLessThanOrEqual(most)
      expect(shape.tokens).toBeGreaterThanOrEqual(tokens)
      expect(shape.tokens).toBeLessThanOrEqual(Math.max(most, 8))
      expect(shape.sequences).toBeGreaterThanOrEqual(pass.length)
    }
  }
})
