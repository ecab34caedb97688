import { describe, expect, it } from 'vitest'
import { splitHeads } from '../../specs/layouts/split_heads.js'
import { findLayout, layoutStrides } from '../../src/runtime/layouts.js'
import { lowerMatmul, type StridedOperand } from '../../src/runtime/matmul.js'

const sizes: Record<string, number> = { b: 2, s: 5, t: 5, h: 3, d: 4, m: 6, n: 7, k: 8, one: 1 }

const operand = (axes: string, layout = 'row'): StridedOperand => {
  const names = axes.split(' ')
  const extents = names.map((name) => sizes[name] ?? 0)
  return { axes: names, extents, strides: layoutStrides(findLayout({ split_heads: splitHeads }, layout, names.length), extents) }
}

/** The only matmul of a product that needs no more than one. */
const lower = (a: StridedOperand, b: StridedOperand, out: StridedOperand) => {
  const { matmul, offsets } = lowerMatmul('node', { a, b, out })
  expect(offsets).toEqual([[0, 0, 0]])
  return matmul
}

describe('lowerMatmul', () => {
  it('lowers a linear layer', () => {
    expect(lower(operand('m k'), operand('n k'), operand('m n'))).toEqual({
      extents: [1, 6, 7, 8],
      strides: [
        [0, 8, 1],
        [0, 8, 1],
        [0, 7, 1],
      ],
    })
  })

  it('takes transposed operands as strides', () => {
    expect(lower(operand('k m'), operand('k n'), operand('n m')).strides).toEqual([
      [0, 1, 6],
      [0, 1, 7],
      [0, 1, 6],
    ])
  })

  it('batches attention scores over heads stored head by head', () => {
    const scores = lower(operand('b s h d', 'split_heads'), operand('b t h d', 'split_heads'), operand('b h s t'))
    expect(scores).toEqual({
      extents: [6, 5, 5, 4],
      strides: [
        [20, 4, 1],
        [20, 4, 1],
        [25, 5, 1],
      ],
    })
    const context = lower(operand('b h s t'), operand('b t h d', 'split_heads'), operand('b s h d', 'split_heads'))
    expect(context.extents).toEqual([6, 5, 4, 5])
    expect(context.strides).toEqual([
      [25, 5, 1],
      [20, 1, 4],
      [20, 4, 1],
    ])
  })

  it('collapses several axes into m, n and k', () => {
    expect(lower(operand('b s h d'), operand('n h d'), operand('b s n'))).toEqual({
      extents: [1, 10, 7, 12],
      strides: [
        [0, 12, 1],
        [0, 12, 1],
        [0, 7, 1],
      ],
    })
  })

  it('gives axes of extent 1 the strides of a dense matrix', () => {
    expect(lower(operand('one k'), operand('n k'), operand('one n')).strides).toEqual([
      [0, 8, 1],
      [0, 8, 1],
      [0, 7, 1],
    ])
    expect(lower(operand('m one'), operand('n one'), operand('m n')).strides).toEqual([
      [0, 1, 6],
      [0, 1, 7],
      [0, 7, 1],
    ])
  })

  it('repeats a matmul over non-adjacent axes, and keeps the strides of the rest', () => {
    const heads = lowerMatmul('node', { a: operand('b s h d'), b: operand('b t h d'), out: operand('b h s t') })
    expect(heads.matmul).toEqual({
      extents: [3, 5, 5, 4],
      strides: [
        [4, 12, 1],
        [4, 12, 1],
        [25, 5, 1],
      ],
    })
    expect(heads.offsets).toEqual([
      [0, 0, 0],
      [60, 60, 75],
    ])
  })

  it('multiplies rows if no axis is contiguous', () => {
    const strided = { axes: ['m', 'k'], extents: [6, 8], strides: [16, 2] }
    const { matmul, offsets } = lowerMatmul('node', { a: strided, b: operand('n k'), out: operand('m n') })
    expect(matmul).toEqual({
      extents: [1, 1, 7, 8],
      strides: [
        [0, 1, 2],
        [0, 8, 1],
        [0, 7, 1],
      ],
    })
    expect(offsets).toEqual([0, 1, 2, 3, 4, 5].map((row) => [16 * row, 0, 7 * row]))
  })

  it('keeps n whole for a bias along it', () => {
    const given = { a: operand('m k'), b: operand('n d k'), out: operand('n m d') }
    expect(lowerMatmul('node', given).offsets).toHaveLength(7)
    expect(() => lowerMatmul('node', given, true)).toThrow(
      expect.objectContaining({ code: 'matmul.strides', message: expect.stringContaining('axes n d of out do not collapse') }),
    )
  })

  it('refuses more matmuls than can be launched one by one', () => {
    const many = (axes: string, extents: number[]) => ({
      axes: axes.split(' '),
      extents,
      strides: extents.map((_, i) => extents.slice(i + 1).reduce((product, extent) => product * extent, 2)),
    })
    const given = { a: many('m k', [300, 4]), b: many('n k', [300, 4]), out: many('m n', [300, 300]) }
    expect(() => lowerMatmul('node', given)).toThrow(
      expect.objectContaining({ code: 'matmul.strides', message: expect.stringContaining('need 90000 separate matmuls') }),
    )
  })

  it.each([
    [
      'sums over axes that lie in two orders',
      operand('m h d'),
      operand('n d h'),
      operand('m n'),
      'matmul.strides',
      'axes h d of b do not collapse: h has stride 1, d has stride 3 and extent 4',
    ],
    [
      'a layout without strides',
      { ...operand('m k'), strides: undefined },
      operand('n k'),
      operand('m n'),
      'matmul.layout',
      'the layout of a (m k)',
    ],
    [
      'an axis in one operand only',
      operand('m k t'),
      operand('n k'),
      operand('m n'),
      'matmul.axes',
      'axis t is in one tensor only',
    ],
    ['an axis named twice', operand('m m'), operand('n m'), operand('m n'), 'matmul.axes', 'a names an axis twice'],
    [
      'extents that differ',
      operand('m k'),
      { ...operand('n k'), extents: [7, 9] },
      operand('m n'),
      'matmul.extent',
      'axis k has extents 8 and 9',
    ],
  ])('refuses %s', (_, a, b, out, code, message) => {
    expect(() => lower(a, b, out)).toThrow(expect.objectContaining({ code, message: expect.stringContaining(message) }))
  })
})
