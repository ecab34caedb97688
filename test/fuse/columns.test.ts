/** Columns of a matmul that an epilogue may read: those proved to lie in its own aligned chunk, and no others. */
import { expect, it } from 'vitest'
import { chunkColumns, readsInChunk } from '../../src/fuse/product/columns.js'
import { call, dim, i32, index } from '../../src/ir/build.js'
import { emptyEnv, evaluateExpr } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'

const c = index('c')
const product = (at: Expr): Expr => ({ kind: 'load', type: 'f32', tensor: 'x', indices: [index('m'), at] })
const staysInChunk = (at: Expr): boolean => readsInChunk(product(at), 'c', ({ tensor }) => tensor === 'x')
const fourth = call('mod', c, i32(4))
const odd = call('mod', c, i32(2))

it.each<[string, Expr]>([
  ['itself', c],
  ['its partner', call('sub', call('add', c, i32(1)), call('mul', i32(2), odd))],
  ['its partner, by cases', call('select', call('eq', odd, i32(0)), call('add', c, i32(1)), call('sub', c, i32(1)))],
  ['the first of its pair', call('mul', call('idiv', c, i32(2)), i32(2))],
  [
    'the first of its four, and what is left of that',
    call('add', call('bitAnd', c, i32(1)), call('mul', i32(4), call('idiv', c, i32(4)))),
  ],
  ['the next of its four', call('add', call('sub', c, fourth), call('mod', call('add', c, i32(1)), i32(4)))],
  ['its partner, by one bit', call('bitXor', c, i32(1))],
  ['the fourth from it, by another', call('bitXor', i32(4), c)],
  ['the second of its pair', call('bitOr', c, i32(1))],
  ['the first of its four, by bits', call('bitAnd', c, i32(-4))],
  ['the first of its pair, by shifts', call('shiftLeft', call('shiftRight', c, i32(1)), i32(1))],
  ['the first of its chunk', call('mul', call('idiv', c, i32(chunkColumns)), i32(chunkColumns))],
])('%s lies in the chunk of a column', (_, at) => {
  expect(staysInChunk(at)).toBe(true)
  for (let column = 0; column < 4 * chunkColumns; column++) {
    const env = emptyEnv({})
    env.values.set('c', column)
    expect(Math.floor(Number(evaluateExpr(at, env)) / chunkColumns)).toBe(Math.floor(column / chunkColumns))
  }
})

it.each<[string, Expr]>([
  ['the next column', call('add', c, i32(1))],
  ['a fixed column', i32(3)],
  ['a column that an attribute says', { kind: 'attr', type: 'i32', name: 'at' }],
  ['the last column', call('sub', dim('n'), i32(1))],
  ['another index', index('d')],
  ['twice the column', call('mul', c, i32(2))],
  ['the column of its pair', call('idiv', c, i32(2))],
  ['the first of three', call('mul', call('idiv', c, i32(3)), i32(3))],
  ['its place in the chunk', call('mod', c, i32(chunkColumns))],
  ['a column of another chunk by cases', call('select', call('eq', odd, i32(0)), c, i32(0))],
  ['a column as far away as a dimension', call('add', c, call('sub', dim('n'), dim('n')))],
  ['a negative column', call('neg', c)],
  ['a multiple of another quotient', call('mul', call('idiv', c, i32(4)), i32(2))],
  ['a partner in the next chunk', call('bitXor', c, i32(chunkColumns))],
  ['the second of two chunks', call('bitOr', c, i32(chunkColumns))],
  ['the first of two chunks', call('bitAnd', c, i32(-2 * chunkColumns))],
  ['a bit of what is beyond its chunk', call('bitXor', call('add', c, i32(1)), i32(1))],
  ['a bit of another multiple', call('bitXor', call('mul', c, i32(2)), i32(1))],
  ['the column of its pair, by a shift', call('shiftRight', c, i32(1))],
  ['what is beyond its chunk at its end', call('add', c, call('mod', c, i32(4)))],
])('%s does not', (_, at) => {
  expect(staysInChunk(at)).toBe(false)
})

it('counts only columns that are read: under a condition a column may lie beyond the chunk of others', () => {
  const [next, before] = [call('add', c, i32(1)), call('sub', c, i32(1))].map(product)
  const pairs = (isEven: Expr): Expr => call('select', isEven, next ?? c, before ?? c)
  const reads = (expr: Expr): boolean => readsInChunk(expr, 'c', ({ tensor }) => tensor === 'x')
  expect(reads(pairs(call('eq', odd, i32(0))))).toBe(true)
  expect(reads(pairs(call('ne', odd, i32(0))))).toBe(false)
  expect(reads(pairs(call('eq', call('mod', c, i32(3)), i32(0))))).toBe(false)
  expect(reads(call('add', pairs(call('eq', odd, i32(0))), next ?? c))).toBe(false)
})
