/** A kernel that ranks its rows, ranks the result by other values, and reads a short row of folds at the resulting indices. */
import { call, dim, f32, i32, index } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import { axis, kernel, load, tensor } from './fixtures.js'

const [r, n, k] = [index('r'), dim('n'), dim('k')]
const float = (row: string, at: Expr): Expr => ({ kind: 'element', type: 'f32', row, index: at })
const integer = (row: string, at: Expr): Expr => ({ kind: 'element', type: 'i32', row, index: at })
const store = (name: string, at: string, value: Expr): Stmt => {
  return { kind: 'storeRow', tensor: name, rows: [r], length: k, index: at, value }
}

export const ranked: Kernel = kernel(
  'ranked',
  'm n k',
  [axis('r', 'm')],
  [
    tensor('x', 'in', 'm n', 'f32'),
    tensor('values', 'out', 'm k', 'f32'),
    tensor('indices', 'out', 'm k', 'i32'),
    tensor('places', 'out', 'm k', 'i32'),
    tensor('sums', 'out', 'm k', 'f32'),
  ],
  [
    { kind: 'topK', name: 'best', indices: 'at', count: k, length: n, index: 'c', value: load('x', r, index('c')) },
    {
      kind: 'row',
      name: 'total',
      type: 'f32',
      length: k,
      index: 'd',
      // The sum of the integers up to d, as a fold: no value of the row can spoil it.
      value: {
        kind: 'fold',
        type: 'f32',
        monoid: 'sum',
        length: call('minimum', call('add', index('d'), i32(1)), n),
        index: 'e',
        value: call('toFloat', index('e')),
      },
    },
    {
      kind: 'topK',
      name: 'again',
      indices: 'againAt',
      count: k,
      length: k,
      index: 'f',
      value: call('neg', call('toFloat', integer('at', index('f')))),
    },
    store('values', 'g', float('best', index('g'))),
    store('indices', 'h', integer('at', index('h'))),
    store('places', 'i1', integer('at', integer('againAt', index('i1')))),
    store('sums', 'j', call('mul', float('total', call('sub', call('sub', k, i32(1)), index('j'))), f32(2))),
  ],
)
