/** Work of attention: rows in tiles, computed queries once per tile of queries, computed keys again for each tile and head. */
import { describe, expect, test } from 'vitest'
import { attentionWork } from '../../src/cost/attention.js'
import { f32, i32 } from '../../src/ir/build.js'
import { attentionKernel, b, c, h, i, j, load, mul, type Variant } from '../emit/attention_subject.js'

const work = (variant: Variant, dims: { readonly s: number; readonly t: number; readonly d: number }) =>
  attentionWork(attentionKernel('a', variant), { dims: { b: 2, h: 4, g: 4, e: dims.d, ...dims }, attrs: {} })

const rows = (tensor: 'q' | 'k') => {
  const at = tensor === 'q' ? i : j
  return { tensor, indices: [b, at, h, i32(0)], element: mul(load(tensor, b, at, h, c), f32(0.5)) }
}

describe('work of attention', () => {
  test('counts keys and queries apart, and pads heads to a tile', () => {
    const { flops, padded, weights } = work({}, { s: 128, t: 64, d: 10 })
    expect(weights).toBe(2 * 4 * 128 * 64)
    expect(flops).toBe(4 * weights * 10)
    expect(padded).toBe(1.6)
    expect(work({}, { s: 128, t: 64, d: 72 }).padded).toBe(80 / 72)
  })

  test('computes queries once, and waits for nothing', () => {
    const of = (s: number) => work({ query: rows('q') }, { s, t: 64, d: 64 })
    expect(of(128)).toMatchObject({ byWarps: false, waits: 0 })
    expect(of(256).instructions).toBe(2 * of(128).instructions)
    expect(work({}, { s: 128, t: 64, d: 64 }).instructions).toBe(0)
  })

  test('computes keys again for each tile of queries', () => {
    const of = (s: number) => work({ key: rows('k') }, { s, t: 128, d: 64 })
    expect(of(64)).toMatchObject({ byWarps: true, waits: 2 * 4 * 2 })
    expect(of(640).instructions).toBe(10 * of(64).instructions)
  })
})
