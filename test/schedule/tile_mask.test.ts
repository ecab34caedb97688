/** Evaluation of masks for whole tiles: row and column values that are read, indices, and undecided parts. */
import { describe, expect, it } from 'vitest'
import { call, dim, f32, i32, index, local, toFloat } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { TensorParam } from '../../src/ir/kernel.js'
import { rowMajor } from '../../src/ir/layout.js'
import { printExpr } from '../../src/ir/print.js'
import { maskedScore, type TileMask, tileMaskOf } from '../../src/schedule/block_mask.js'

const [b, i, j] = ['b', 'i', 'j'].map(index) as [Expr, Expr, Expr]
const raw = local('raw')
const input = (name: string, dims: readonly string[]): TensorParam => ({
  name,
  access: 'in',
  dtype: 'i32',
  dims,
  layout: rowMajor(dims),
})
const kernel = {
  tensors: [input('own', ['b', 's']), input('other', ['b', 't']), input('pairs', ['b', 's', 't']), input('short', ['b', 'r'])],
  batch: dim('b'),
  heads: dim('h'),
  queries: dim('s'),
  keys: dim('t'),
}
const load = (tensor: string, ...indices: Expr[]): Expr => ({ kind: 'load', type: 'i32', tensor, indices })
const own = load('own', b, i)
const other = load('other', b, j)
const eq = (x: Expr, y: Expr): Expr => call('eq', x, y)
const told = (condition: Expr): TileMask | undefined => tileMaskOf(condition, kernel)
const texts = (mask: TileMask | undefined): readonly string[] =>
  mask === undefined ? [] : [mask.rows.map(printExpr).join(), mask.keys.map(printExpr).join(), printExpr(mask.test)]

describe('tileMaskOf', () => {
  it.each([
    ['values of rows and columns', eq(own, other), ['own[b, i]', 'other[b, j]', 'row value 0 === key value 0']],
    [
      'whole integer terms of one side',
      call('lt', call('mul', call('abs', own), i32(2)), call('add', other, j)),
      ['abs(own[b, i]) * 2', 'other[b, j] + j', 'row value 0 < key value 0'],
    ],
    ['one value once', call('and', eq(own, other), call('gt', own, i32(0))), ['own[b, i],own[b, i] > 0', 'other[b, j]']],
    ['places', call('le', call('idiv', i, i32(7)), call('mod', j, i32(40))), ['', '', 'i idiv 7 <= j % 40']],
    ['places as floats', call('lt', toFloat(call('sub', i, j)), f32(2)), ['', '', 'toFloat(i - j) < 2.0']],
    [
      'what both sides of an "or" leave',
      call('or', eq(load('pairs', b, i, j), i32(0)), eq(i, j)),
      ['', '', 'unknown || i === j'],
    ],
  ])('tells %s', (_, condition, expected) => {
    expect(texts(told(condition)).slice(0, expected.length)).toEqual(expected)
  })

  it.each([
    ['what is read for pairs', eq(load('pairs', b, i, j), i32(1))],
    ['a place that may lie outside of its tensor', eq(load('short', b, j), i32(1))],
    ['a place that only a guard keeps inside', eq(load('other', b, call('sub', j, i32(1))), i32(1))],
    ['sums of floats, which are rounded', call('lt', call('add', toFloat(own), f32(0.1)), toFloat(other))],
    ['remainders that take all values in a tile', eq(call('mod', call('sub', i, j), i32(2)), i32(0))],
    ['bits of two sides', eq(call('bitAnd', own, other), i32(0))],
  ])('leaves %s open', (_, condition) => expect(told(condition)).toBeUndefined())

  it('takes at most four values of a side', () => {
    const many = [1, 2, 3, 4, 5].map((n) => eq(call('mul', own, i32(n)), other)).reduce((x, y) => call('and', x, y))
    expect(told(many)?.rows).toHaveLength(4)
  })

  it('leaves conditions open that would be written out at great length', () => {
    let condition = eq(own, other)
    for (let n = 0; n < 40; n++) condition = call('and', condition, condition)
    expect(told(condition)).toBeUndefined()
  })
})

describe('maskedScore', () => {
  const score = call('mul', raw, f32(0.5))
  const masked = (condition: Expr, low: Expr): Expr => call('select', condition, score, low)
  it('removes values below every score', () => {
    for (const low of [f32(-1e30), f32(Number.NEGATIVE_INFINITY)]) {
      expect(maskedScore(masked(eq(own, other), low))).toEqual({ kept: score, condition: eq(own, other) })
    }
  })

  it('leaves a low score that counts', () => {
    const whole = masked(eq(own, other), f32(-1e9))
    expect(maskedScore(whole)).toEqual({ kept: whole, condition: undefined })
  })

  it('keeps conditions on the matmul, and values under them', () => {
    const positive = call('gt', raw, f32(0))
    const found = maskedScore(masked(call('and', call('and', eq(i, j), positive), eq(own, other)), f32(-1e30)))
    expect(found.condition).toEqual(eq(i, j))
    expect(printExpr(found.kept)).toContain('own[b, i] === other[b, j]')
    const none = masked(call('and', positive, eq(i, j)), f32(-1e30))
    expect(maskedScore(none)).toEqual({ kept: none, condition: undefined })
  })
})
