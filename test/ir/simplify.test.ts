/** Simplification: expressions that fold, expressions that stay, and kernels with the same results before and after. */
import { describe, expect, it } from 'vitest'
import { call, constant, dim, f32, i32, index, local } from '../../src/ir/build.js'
import { evaluateKernel } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'
import { printExpr } from '../../src/ir/print.js'
import { simplifyExpr, simplifyKernel } from '../../src/ir/simplify.js'
import { verifyKernel } from '../../src/ir/verify.js'
import { centre, running } from './kernels.js'

const a = local('a')
const i = index('i')
const isTrue = constant('bool', true)

const cases: readonly (readonly [after: string, before: Expr])[] = [
  ['5', call('add', i32(2), i32(3))],
  ['2.0', call('sqrt', f32(4))],
  ['false', call('lt', i32(3), i32(2))],
  ['7.0', call('toFloat', call('add', i32(3), i32(4)))],
  ['0', call('mul', i32(0), i32(-1))],
  ['i', call('add', call('mul', i, i32(1)), i32(0))],
  ['i', call('add', i32(0), call('idiv', i, i32(1)))],
  ['i', call('shiftLeft', call('sub', i, i32(0)), i32(0))],
  ['a', call('select', call('lt', i32(1), i32(2)), a, f32(0))],
  ['a < 1.0', call('and', isTrue, call('lt', a, f32(1)))],
  ['true', call('or', isTrue, call('lt', a, f32(1)))],
  ['a + 0.0', call('add', a, f32(0))],
  ['a * 1.0', call('mul', a, f32(1))],
  ['2147483647 + 1', call('add', i32(2147483647), i32(1))],
  ['1 idiv 0', call('idiv', i32(1), i32(0))],
  ['toFloat(n)', call('toFloat', dim('n'))],
]

describe('simplifyExpr', () => {
  it.each(cases)('%s', (after, before) => expect(printExpr(simplifyExpr(before))).toBe(after))
})

describe('simplifyKernel', () => {
  it('drops unused values, and values that only they read', () => {
    const dead = { kind: 'let', name: 'dead', type: 'f32', value: local('total') } as const
    const [row, reduce, mean, , store] = centre.body
    const y = centre.tensors.filter((tensor) => tensor.name !== 'y')
    const rest = [row, reduce, mean, dead, store].flatMap((stmt) => stmt ?? [])
    expect(simplifyKernel({ ...centre, tensors: y, body: rest }).body).toEqual([row, reduce, mean, store])
    expect(simplifyKernel({ ...centre, tensors: [], body: rest.slice(0, 4) }).body).toEqual([])
  })
  it('drops scans nothing reads', () => {
    const [ends, , , storeRow] = running.body
    const tensors = running.tensors.filter((tensor) => tensor.name !== 'top')
    expect(simplifyKernel({ ...running, tensors, body: running.body.slice(0, 4) }).body).toEqual([ends, storeRow])
  })
  it('changes nothing that is computed', () => {
    const tensors = { x: { data: [1, 2, 3, 4, 5, 7], shape: [2, 3] }, ids: { data: [1, 0], shape: [2] } }
    const simple = simplifyKernel(centre)
    verifyKernel(simple, 'simplification')
    expect(evaluateKernel(simple, tensors, { m: 2, n: 3 })).toEqual(evaluateKernel(centre, tensors, { m: 2, n: 3 }))
  })
})
