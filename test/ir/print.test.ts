/** The printed form of each expression and statement. */
import { expect, it } from 'vitest'
import { call, constant, dim, f32, i32, index, local } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import { rowMajor } from '../../src/ir/layout.js'
import { printExpr, printKernel, printLayout } from '../../src/ir/print.js'
import { centre, load, running, tally } from './kernels.js'

const [a, b, c] = ['a', 'b', 'c'].map((name) => local(name)) as [Expr, Expr, Expr]

const cases: readonly (readonly [text: string, expr: Expr])[] = [
  ['2', i32(2)],
  ['2.0', f32(2)],
  ['-0.0', f32(-0)],
  ['-2.0', f32(-2)],
  ['1e-12', f32(1e-12)],
  ['Infinity', f32(Number.POSITIVE_INFINITY)],
  ['NaN', f32(Number.NaN)],
  ['true', constant('bool', true)],
  ['(a + b) * c', call('mul', call('add', a, b), c)],
  ['a + b * c', call('add', a, call('mul', b, c))],
  ['a - (b - c)', call('sub', a, call('sub', b, c))],
  ['a - b - c', call('sub', call('sub', a, b), c)],
  ['a / (b / c)', call('div', a, call('div', b, c))],
  ['-(a + b)', call('neg', call('add', a, b))],
  ['-a * b', call('mul', call('neg', a), b)],
  ['-(-a)', call('neg', call('neg', a))],
  ['-(-1.0)', call('neg', f32(-1))],
  ['i idiv 2 % 3', call('mod', call('idiv', index('i'), i32(2)), i32(3))],
  ['a < b && !(a < c)', call('and', call('lt', a, b), call('not', call('lt', a, c)))],
  ['a < b ? a : b', call('select', call('lt', a, b), a, b)],
  ['(a < b ? a : b) + c', call('add', call('select', call('lt', a, b), a, b), c)],
  ['toFloat(n)', call('toFloat', dim('n'))],
  ['maximum(a, b + c)', call('maximum', a, call('add', b, c))],
  ['x[i, i + 1]', load('x', index('i'), call('add', index('i'), i32(1)))],
  [
    'max(k < n: x[i, k])',
    { kind: 'fold', type: 'f32', monoid: 'max', length: dim('n'), index: 'k', value: load('x', index('i'), index('k')) },
  ],
]

it.each(cases)('%s', (text, expr) => expect(printExpr(expr)).toBe(text))

it('prints kernels', () =>
  expect(printKernel(centre)).toBe(`kernel centre<T: f32 | f16>(m, n)
  in  x: T[m, n]
  in  ids: i32[m]
  out y: T[m, n]
  out mean: f32[m]
  attr eps: f32 = 0.5
for r < m
  row v: f32 = [c < n: x[ids[r], c]]
  let total: f32 = sum(d < n: v[d])
  let a: f32 = total / toFloat(n)
  y[r, e] = v[e] - a + eps for e < n
  mean[r] = a * 1.0
`))

it('prints scans', () => expect(printKernel(running)).toContain('\n  row twice: f32 = scan sum(d < n: ends[d])\n'))

it('prints histograms', () => expect(printKernel(tally)).toContain('\n  counts[r, *] = histogram(c < n: ids[r, c]) of k\n'))

it('prints layouts', () => expect(printLayout(rowMajor(['r', 'c']))).toBe('layout row(r, c) = r * #c + c of #r * #c\n'))
