import { describe, expect, it } from 'vitest'
import { splitHeads } from '../../specs/layouts/split_heads.js'
import { layout } from '../../src/lang/layout.js'
import { findLayout, layoutSize, layoutStrides, stridesOf } from '../../src/runtime/layouts.js'

const layouts = { split_heads: splitHeads }

describe('layoutStrides', () => {
  it('finds the strides of affine layouts, small and large', () => {
    expect(layoutStrides(findLayout(layouts, 'row', 3), [2, 3, 5])).toEqual([15, 5, 1])
    expect(layoutStrides(findLayout(layouts, 'row', 2), [3000, 700])).toEqual([700, 1])
    expect(layoutStrides(findLayout(layouts, 'row', 0), [])).toEqual([])
    expect(layoutStrides(splitHeads, [2, 7, 3, 4])).toEqual([84, 4, 28, 1])
    expect(layoutStrides(splitHeads, [4, 128, 12, 64])).toEqual([98304, 64, 8192, 1])
  })

  it('gives an axis of extent 1 stride 0', () => {
    expect(layoutStrides(splitHeads, [1, 7, 1, 4])).toEqual([0, 4, 0, 1])
  })

  it.each([
    ['a base offset', layout('base', ['m', 'n'], { offset: (i, n) => i.m * n.n + i.n + 1 })],
    ['tiles', layout('col32', ['m', 'n'], { offset: (i, n) => (i.n >> 5) * 32 * n.m + i.m * 32 + (i.n & 31) })],
    ['a swizzle', layout('swizzle', ['m', 'n'], { offset: (i, n) => i.m * n.n + (i.n ^ (i.m & 1)) })],
  ])('finds none for %s', (_, tricky) => {
    for (const extents of [
      [4, 64],
      [256, 512],
    ])
      expect(layoutStrides(tricky, extents)).toBeUndefined()
  })
})

describe('stridesOf', () => {
  it('equals the result of a search, for any extents of a layout', () => {
    const shapes = [
      [2, 7, 3, 4],
      [1, 7, 1, 4],
      [2, 7, 3, 5],
    ]
    for (const extents of [...shapes, ...shapes]) {
      for (const name of ['row', 'split_heads']) {
        expect(stridesOf(layouts, name, extents)).toEqual(layoutStrides(findLayout(layouts, name, 4), extents))
      }
    }
    expect(stridesOf(layouts, 'row', [])).toEqual([])
  })

  it('distinguishes layouts of one name, and recognises again that one has none', () => {
    const tiles = { split_heads: { ...splitHeads, offset: (i: Readonly<Record<string, number>>) => (i.b ?? 0) + 1 } }
    for (const _ of [1, 2]) expect(stridesOf(tiles, 'split_heads', [2, 7, 3, 4])).toBeUndefined()
    expect(stridesOf(layouts, 'split_heads', [2, 7, 3, 4])).toEqual([84, 4, 28, 1])
    expect(() => stridesOf(layouts, 'none', [2])).toThrow('unknown layout none')
  })
})

describe('findLayout', () => {
  it('counts padding in the size', () => {
    const padded = layout('padded', ['m', 'n'], { offset: (i) => i.m * 32 + i.n, size: (n) => n.m * 32 })
    expect(layoutSize(findLayout({ padded }, 'padded', 2), [3, 5])).toBe(96)
    expect(layoutSize(findLayout({}, 'row', 2), [3, 5])).toBe(15)
  })

  it('refuses unknown layouts and other ranks', () => {
    expect(() => findLayout(layouts, 'col32', 2)).toThrow(
      expect.objectContaining({
        code: 'layout.unknown',
        hint: 'known: row, split_heads; a layout that only a plan names comes with the plan: load(graph, { plan: myPlan })',
      }),
    )
    expect(() => findLayout(layouts, 'split_heads', 3)).toThrow(expect.objectContaining({ code: 'layout.rank' }))
  })
})
