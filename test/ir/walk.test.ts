/** Visiting and rewriting: free names, substitution, and that shared nodes stay shared. */
import { expect, it } from 'vitest'
import { call, dim, f32, i32, index, local } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import { printExpr } from '../../src/ir/print.js'
import { freeNames, mapStmt, rewrite, stmtExprs, substitute, visit, visitKernel } from '../../src/ir/walk.js'
import { centre, element, load } from './kernels.js'

const fold: Expr = {
  kind: 'fold',
  type: 'f32',
  monoid: 'sum',
  length: dim('n'),
  index: 'k',
  value: call('mul', load('x', index('r'), index('k')), call('add', local('a'), element('v', 'c'))),
}

it('finds free names, without those bound by a fold', () => expect([...freeNames(fold)].sort()).toEqual(['a', 'c', 'r', 'v']))

it('substitutes indices and locals', () =>
  expect(
    printExpr(
      substitute(
        fold,
        new Map([
          ['r', i32(0)],
          ['a', f32(2)],
        ]),
      ),
    ),
  ).toBe('sum(k < n: x[0, k] * (2.0 + v[c]))'))

it('returns the same object when nothing changes', () => expect(rewrite(fold, (expr) => expr)).toBe(fold))

it('keeps shared nodes shared and sees each once', () => {
  const shared = call('exp', local('a'))
  const changed = rewrite(call('add', shared, shared), (expr) => (expr.kind === 'local' ? local('b') : expr))
  const [left, right] = changed.kind === 'call' ? changed.args : []
  expect(left).toBe(right)
  expect(printExpr(changed)).toBe('exp(b) + exp(b)')
  let visits = 0
  visit(changed, () => {
    visits++
  })
  expect(visits).toBe(3)
})

it('takes time in the number of nodes, not of paths', () => {
  let deep = local('a')
  for (let n = 0; n < 200; n++) deep = call('add', deep, deep)
  let visits = 0
  visit(substitute(deep, new Map([['a', f32(1)]])), () => {
    visits++
  })
  expect(visits).toBe(201)
})

it('reaches every expression of every statement', () => {
  const loads: string[] = []
  visitKernel(centre, (expr) => {
    if (expr.kind === 'load') loads.push(expr.tensor)
  })
  expect(loads).toEqual(['x', 'ids'])
  const negated = centre.body.map((stmt) => mapStmt(stmt, (expr) => call('neg', expr)))
  for (const expr of negated.flatMap(stmtExprs)) expect(printExpr(expr)).toMatch(/^-/)
})
