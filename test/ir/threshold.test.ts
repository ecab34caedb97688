import { describe, expect, it } from 'vitest'
import { dim, f32, i32, index } from '../../src/ir/build.js'
import type { Kernel, StmtOf } from '../../src/ir/kernel.js'
import { verifyKernel } from '../../src/ir/verify.js'
import { threshold } from '../../src/lang/index.js'
import { centre, load } from './kernels.js'

const key = load('x', index('r'), index('k'))
const found: StmtOf<'team'> = {
  kind: 'team',
  construct: 'threshold',
  name: 't',
  type: 'f32',
  length: dim('n'),
  index: 'k',
  scalars: { target: f32(2) },
  elements: { key, weight: f32(1) },
}
const withThreshold = (change: Partial<typeof found>): Kernel => ({ ...centre, body: [{ ...found, ...change }, ...centre.body] })

describe('the verifier', () => {
  it('accepts a threshold', () => expect(() => verifyKernel(withThreshold({}), 'test')).not.toThrow())
  it.each([
    ['targets are floats', { scalars: { target: i32(2) } }, 'a threshold takes floats, not i32'],
    ['keys are floats', { elements: { key: index('k'), weight: f32(1) } }, 'a threshold takes floats, not i32'],
    ['weights are floats', { elements: { key, weight: i32(1) } }, 'a threshold takes floats, not i32'],
    ['lengths are integers', { length: f32(2) }, 'index or length 2.0 is f32, not i32'],
    ['names are unique', { name: 'total' }, 'name total is introduced twice'],
  ] as const)('holds that %s', (_, change, problem) => {
    expect(() => verifyKernel(withThreshold(change), 'test')).toThrow(problem)
  })
})

/** Reference by definition: the largest key such that the elements from it on weigh enough. */
function byDefinition(keys: readonly number[], weights: readonly number[], target: number): number {
  const reach = (t: number): number => weights.reduce((sum, weight, i) => ((keys[i] ?? 0) >= t ? sum + weight : sum), 0)
  return Math.max(Number.NEGATIVE_INFINITY, ...keys.filter((key) => reach(key) >= target && reach(key) > 0))
}

const find = (keys: readonly number[], weights: readonly number[], target: number): number =>
  threshold(
    keys.length,
    target,
    (c) => keys[c] ?? 0,
    (c) => weights[c] ?? 0,
  )

describe('threshold', () => {
  it('equals its definition', () => {
    let state = 7
    const next = (bound: number): number => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0
      return Math.floor((state / 2 ** 32) * bound)
    }
    for (let round = 0; round < 400; round++) {
      const length = 1 + next(12)
      const keys = Array.from({ length }, () => next(5) - 2)
      const weights = Array.from({ length }, () => next(4) / 2)
      const target = next(10) / 2 - 1
      expect(find(keys, weights, target), `${keys} weighing ${weights} to ${target}`).toBe(byDefinition(keys, weights, target))
    }
  })

  it('is the k-th largest key with equal weights of 1, with all its equals', () => {
    const keys = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]
    const ones = keys.map(() => 1)
    expect([1, 2, 3, 4, 5, 10].map((k) => find(keys, ones, k))).toEqual([9, 6, 5, 5, 4, 1])
  })

  it('is -Infinity if nothing reaches the target', () => {
    expect(find([1, 2], [1, 1], 3)).toBe(Number.NEGATIVE_INFINITY)
    expect(find([1, 2], [1, 1], Number.POSITIVE_INFINITY)).toBe(Number.NEGATIVE_INFINITY)
    expect(find([], [], 0)).toBe(Number.NEGATIVE_INFINITY)
    expect(find([1, 2], [0, 0], 0)).toBe(Number.NEGATIVE_INFINITY)
  })

  it('takes the first key that weighs something for a target of 0 or less', () => {
    expect(find([1, 3, 2], [1, 0, 1], 0)).toBe(2)
    expect(find([1, 3, 2], [1, 0, 1], -5)).toBe(2)
  })

  it('counts weights from 0 to 256, and a key that is not a number nowhere', () => {
    expect(find([1, 2, 3], [1, 1, -5], 1)).toBe(2)
    expect(find([1, 2, 3], [1, 1, Number.NaN], 1)).toBe(2)
    expect(find([1, 2], [1, 1000], 257)).toBe(1)
    expect(find([Number.NaN, 2], [8, 1], 2)).toBe(Number.NEGATIVE_INFINITY)
  })
})
