/** Expressions that a launcher can compute: integers of dimensions and attributes, and nothing that is in memory or varies per row. */
import { expect, it } from 'vitest'
import { call, dim, f32, i32, index, local } from '../../src/ir/build.js'
import { isHostExpr } from '../../src/schedule/normalise/host_expr.js'
import { loadInt } from './fixtures.js'

it('integer arithmetic over dimensions is of the host', () => {
  expect(isHostExpr(call('add', call('mul', dim('n'), i32(2)), i32(1)))).toBe(true)
})

it.each([
  ['an element', loadInt('ids', i32(0))],
  ['an index', index('c')],
  ['a named value', local('total')],
  ['a float', call('add', f32(1), f32(2))],
  ['arithmetic over an element', call('add', dim('n'), loadInt('ids', i32(0)))],
])('%s is not', (_, expr) => expect(isHostExpr(expr)).toBe(false))
