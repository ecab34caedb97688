/** Conditions under which attention moves whole rows: their stride, and alignment to multiples of a chunk. */
import { describe, expect, it } from 'vitest'
import { alignedText, isTogether, stepOf } from '../../src/emit/attention/row_access.js'
import { notingScope } from '../../src/emit/attention/slots.js'
import type { Scope } from '../../src/emit/print/expression.js'
import { createNames } from '../../src/emit/print/names.js'
import { call, dim, i32 } from '../../src/ir/build.js'
import { emptyEnv, evaluateExpr } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'
import { offsetOf } from '../../src/schedule/access/access.js'
import { add, attentionKernel, b, h, i, input, j, loadInt, mul, sub } from './attention_subject.js'

const tensors = [input('x', 'b s h d'), input('starts', 'b', 'i32')]
const offset = (...indices: Expr[]): Expr => offsetOf(tensors[0] ?? input('x', 'b'), indices, {})
const sizes = { b: 2, s: 9, h: 3, d: 16 }
const number = (e: Expr | undefined): number => (e === undefined ? Number.NaN : Number(evaluateExpr(e, emptyEnv(sizes))))

function scopeOf(): Scope {
  const kernel = attentionKernel('any')
  const names = createNames({
    instance: { kernel: { ...kernel, rows: [], body: [] }, types: {}, dims: {} },
    axes: [],
    program: { kind: 'elementwise', steps: [], threads: 0 },
  })
  return notingScope({ names, tensors })
}

describe('stepOf', () => {
  it('is the distance of neighbouring rows', () => {
    expect(number(stepOf(offset(b, j, h, i32(0)), 'j'))).toBe(3 * 16)
    expect(number(stepOf(offset(b, add(loadInt('starts', b), j), h, i32(0)), 'j'))).toBe(3 * 16)
    expect(number(stepOf(offset(j, add(j, i32(1)), h, i32(0)), 'j'))).toBe(9 * 3 * 16 + 3 * 16)
    expect(number(stepOf(offset(b, i32(0), h, i32(0)), 'j'))).toBe(0)
  })

  it.each([
    ['a table', offset(b, loadInt('starts', j), h, i32(0))],
    ['a quotient', offset(b, call('idiv', j, i32(2)), h, i32(0))],
    ['a square', offset(b, mul(j, j), h, i32(0))],
    ['a row in reverse', offset(b, sub(dim('s'), j), h, i32(0))],
    ['a distance in memory', offset(b, mul(j, loadInt('starts', b)), h, i32(0))],
  ])('does not exist for %s', (_, e) => expect(stepOf(e, 'j')).toBeUndefined())
})

describe('alignedText', () => {
  const text = (...indices: Expr[]): string => alignedText([{ tensor: 'x', indices }], scopeOf())

  it('names the quantity that has to be a multiple of a chunk', () => {
    expect(text(b, i, h, i32(0))).toContain('% 8 == 0')
    expect(text(b, i, h, i32(8))).toContain('% 8 == 0')
    expect(text(b, i, h, mul(i, dim('d')))).toContain('% 8 == 0')
  })

  it('is never true of rows that begin anywhere', () => {
    expect(text(b, i, h, i32(4))).toBe('false')
    expect(text(b, i, h, i)).toBe('false')
  })
})

it('elements of a row are adjacent if the last axis is innermost', () => {
  expect(isTogether({ tensor: 'x', indices: [b, i, h, i32(0)] }, scopeOf())).toBe(true)
  expect(isTogether({ tensor: 'x', indices: [b, i, h, mul(h, i32(4))] }, scopeOf())).toBe(true)
  const { layout } = input('x', 'b d s h')
  const turned = { ...input('x', 'b s h d'), layout: { ...layout, name: 'turned', axes: ['b', 's', 'h', 'd'] } }
  expect(isTogether({ tensor: 'x', indices: [b, i, h, i32(0)] }, { ...scopeOf(), tensors: [turned] })).toBe(false)
})
