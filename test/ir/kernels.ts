/** Small kernels written in IR, for tests of the IR's own tools. */
import { call, dim, f32, index, local } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { rowMajor } from '../../src/ir/layout.js'

export const load = (tensor: string, ...indices: readonly Expr[]): Expr => ({ kind: 'load', type: 'f32', tensor, indices })
export const element = (row: string, at: string): Expr => ({ kind: 'element', type: 'f32', row, index: index(at) })
export const loadInt = (tensor: string, ...indices: readonly Expr[]): Expr => ({ kind: 'load', type: 'i32', tensor, indices })

/** Rows of `x: m n` minus their mean, and the mean itself. */
export const centre: Kernel = {
  name: 'centre',
  source: { file: 'specs/ops/centre.ts', line: 1, column: 1 },
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16'] },
  attrs: [{ name: 'eps', type: 'f32', default: 0.5 }],
  tensors: [
    { name: 'x', access: 'in', dtype: { param: 'T' }, dims: ['m', 'n'], layout: rowMajor(['m', 'n']) },
    { name: 'ids', access: 'in', dtype: 'i32', dims: ['m'], layout: rowMajor(['m']) },
    { name: 'y', access: 'out', dtype: { param: 'T' }, dims: ['m', 'n'], layout: rowMajor(['m', 'n']) },
    { name: 'mean', access: 'out', dtype: 'f32', dims: ['m'], layout: rowMajor(['m']) },
  ],
  rows: [{ index: 'r', dim: 'm' }],
  body: [
    {
      kind: 'row',
      name: 'v',
      type: 'f32',
      length: dim('n'),
      index: 'c',
      value: load('x', loadInt('ids', index('r')), index('c')),
    },
    { kind: 'reduce', name: 'total', type: 'f32', monoid: 'sum', length: dim('n'), index: 'd', value: element('v', 'd') },
    { kind: 'let', name: 'a', type: 'f32', value: call('div', local('total'), dim('n')) },
    {
      kind: 'storeRow',
      tensor: 'y',
      rows: [index('r')],
      length: dim('n'),
      index: 'e',
      value: call('add', call('sub', element('v', 'e'), local('a')), { kind: 'attr', type: 'f32', name: 'eps' }),
    },
    { kind: 'store', tensor: 'mean', indices: [index('r')], value: call('mul', local('a'), f32(1)) },
  ],
}

/** Number of ids in each row of `ids: m n` that are 0, 1 and so on. */
export const tally: Kernel = {
  ...centre,
  name: 'tally',
  dims: ['m', 'n', 'k'],
  types: {},
  attrs: [],
  tensors: [
    { name: 'ids', access: 'in', dtype: 'i32', dims: ['m', 'n'], layout: rowMajor(['m', 'n']) },
    { name: 'counts', access: 'out', dtype: 'i32', dims: ['m', 'k'], layout: rowMajor(['m', 'k']) },
  ],
  body: [
    {
      kind: 'histogram',
      tensor: 'counts',
      rows: [index('r')],
      bins: dim('k'),
      length: dim('n'),
      index: 'c',
      value: loadInt('ids', index('r'), index('c')),
    },
  ],
}

/** Running sums of each row and, summed once more, of those; the largest of the latter. */
export const running: Kernel = {
  ...centre,
  name: 'running',
  attrs: [],
  tensors: centre.tensors.map((tensor) => (tensor.name === 'mean' ? { ...tensor, name: 'top' } : tensor)),
  body: [
    {
      kind: 'scan',
      name: 'ends',
      type: 'f32',
      monoid: 'sum',
      length: dim('n'),
      index: 'c',
      value: load('x', loadInt('ids', index('r')), index('c')),
    },
    { kind: 'scan', name: 'twice', type: 'f32', monoid: 'sum', length: dim('n'), index: 'd', value: element('ends', 'd') },
    { kind: 'reduce', name: 'most', type: 'f32', monoid: 'max', length: dim('n'), index: 'e', value: element('twice', 'e') },
    { kind: 'storeRow', tensor: 'y', rows: [index('r')], length: dim('n'), index: 'f', value: element('ends', 'f') },
    { kind: 'store', tensor: 'top', indices: [index('r')], value: local('most') },
  ],
}
