/** Kernels written as IR: the shapes of program that scheduling and emission must handle, shipped or not. */
import { call, dim, f32, i32, index, local } from '../../src/ir/build.js'
import type { DType } from '../../src/ir/dtype.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel, RowAxis, Stmt, TensorParam } from '../../src/ir/kernel.js'
import { type Layout, rowMajor } from '../../src/ir/layout.js'
import type { MonoidName } from '../../src/ir/monoids.js'

export const T = { param: 'T' } as const
export const allFloats: readonly DType[] = ['f32', 'f16', 'bf16']

type Dims = string

const words = (text: Dims): string[] => (text === '' ? [] : text.split(' '))

export const tensor = (
  name: string,
  access: 'in' | 'out',
  dims: Dims,
  dtype: TensorParam['dtype'] = T,
  layout?: Layout,
): TensorParam => ({
  name,
  access,
  dtype,
  dims: words(dims),
  layout: layout ?? rowMajor(words(dims)),
})

export const axis = (name: string, over: string): RowAxis => ({ index: name, dim: over })

export function kernel(
  name: string,
  dims: Dims,
  rows: readonly RowAxis[],
  tensors: readonly TensorParam[],
  body: readonly Stmt[],
  attrs: Kernel['attrs'] = [],
): Kernel {
  const types = tensors.some((t) => typeof t.dtype !== 'string') ? { T: allFloats } : {}
  return {
    name,
    source: { file: `specs/ops/${name}.ts`, line: 1, column: 1 },
    dims: words(dims),
    types,
    attrs,
    tensors,
    rows,
    body,
  }
}

export const load = (name: string, ...indices: readonly Expr[]): Expr => ({ kind: 'load', type: 'f32', tensor: name, indices })
export const loadInt = (name: string, ...indices: readonly Expr[]): Expr => ({ kind: 'load', type: 'i32', tensor: name, indices })
export const element = (row: string, at: Expr): Expr => ({ kind: 'element', type: 'f32', row, index: at })
const elementInt = (row: string, at: Expr): Expr => ({ kind: 'element', type: 'i32', row, index: at })

const rowOf = (name: string, over: Expr, i: string, value: Expr): Stmt => ({
  kind: 'row',
  name,
  type: 'f32',
  length: over,
  index: i,
  value,
})
const reduce = (name: string, monoid: MonoidName, over: Expr, i: string, value: Expr, type: 'f32' | 'i32' = 'f32'): Stmt => ({
  kind: 'reduce',
  name,
  type,
  monoid,
  length: over,
  index: i,
  value,
})
const scan = (name: string, monoid: MonoidName, over: Expr, i: string, value: Expr, type: 'f32' | 'i32' = 'f32'): Stmt => ({
  kind: 'scan',
  name,
  type,
  monoid,
  length: over,
  index: i,
  value,
})
const scalar = (name: string, value: Expr): Stmt => ({ kind: 'let', name, type: value.type, value })
const storeRow = (name: string, rows: readonly Expr[], over: Expr, i: string, value: Expr): Stmt => ({
  kind: 'storeRow',
  tensor: name,
  rows,
  length: over,
  index: i,
  value,
})
const store = (name: string, indices: readonly Expr[], value: Expr): Stmt => ({ kind: 'store', tensor: name, indices, value })

const m = index('m0')
const n = dim('n')
const rowsOverM = [axis('m0', 'm')]
const x = tensor('x', 'in', 'm n')
const y = tensor('y', 'out', 'm n')

export const layerNorm = kernel(
  'layer_norm',
  'm n',
  rowsOverM,
  [x, tensor('gamma', 'in', 'n'), tensor('beta', 'in', 'n'), y],
  [
    rowOf('v', n, 'c', load('x', m, index('c'))),
    reduce('total', 'sum', n, 'c1', element('v', index('c1'))),
    scalar('mean', call('div', local('total'), n)),
    reduce('squares', 'sum', n, 'c2', call('square', call('sub', element('v', index('c2')), local('mean')))),
    scalar('variance', call('div', local('squares'), n)),
    storeRow(
      'y',
      [m],
      n,
      'c3',
      call(
        'add',
        call(
          'mul',
          call(
            'mul',
            call('sub', element('v', index('c3')), local('mean')),
            call('rsqrt', call('add', local('variance'), { kind: 'attr', type: 'f32', name: 'eps' })),
          ),
          load('gamma', index('c3')),
        ),
        load('beta', index('c3')),
      ),
    ),
  ],
  [{ name: 'eps', type: 'f32', default: 1e-12 }],
)

export const softmax = kernel(
  'softmax',
  'm n',
  rowsOverM,
  [x, y],
  [
    rowOf('v', n, 'c', load('x', m, index('c'))),
    reduce('top', 'max', n, 'c1', element('v', index('c1'))),
    rowOf('e', n, 'c2', call('exp', call('sub', element('v', index('c2')), local('top')))),
    reduce('total', 'sum', n, 'c3', element('e', index('c3'))),
    storeRow('y', [m], n, 'c4', call('div', element('e', index('c4')), local('total'))),
  ],
)

const gelu = (a: Expr): Expr =>
  call('mul', call('mul', f32(0.5), a), call('add', f32(1), call('erf', call('mul', a, f32(Math.SQRT1_2)))))

/** A scalar of both row axes: the innermost axis becomes the loop. */
export const pointwise = kernel(
  'gelu',
  'm n',
  [axis('m0', 'm'), axis('c', 'n')],
  [x, y],
  [scalar('a', load('x', m, index('c'))), store('y', [m, index('c')], gelu(local('a')))],
)

/** Rows of a table chosen by an integer tensor. */
export const gatherRows = kernel(
  'gather_rows',
  'm n v',
  rowsOverM,
  [tensor('ids', 'in', 'm', 'i32'), tensor('table', 'in', 'v n'), y],
  [scalar('id', loadInt('ids', m)), storeRow('y', [m], n, 'c', load('table', local('id', 'i32'), index('c')))],
)

const headsLayout: Layout = {
  name: 'split_heads',
  axes: ['b', 's', 'h', 'd'],
  offset: call(
    'add',
    call(
      'mul',
      call('add', call('mul', call('add', call('mul', index('b'), dim('h')), index('h')), dim('s')), index('s')),
      dim('d'),
    ),
    index('d'),
  ),
  size: call('mul', call('mul', call('mul', dim('b'), dim('s')), dim('h')), dim('d')),
}

export const splitHeads = kernel(
  'split_heads',
  'b s h d',
  [axis('bi', 'b'), axis('si', 's'), axis('hi', 'h'), axis('di', 'd')],
  [tensor('x', 'in', 'b s h d'), tensor('y', 'out', 'b s h d', T, headsLayout)],
  [
    store(
      'y',
      [index('bi'), index('si'), index('hi'), index('di')],
      load('x', index('bi'), index('si'), index('hi'), index('di')),
    ),
  ],
)

/** The last two dimensions change places: reads are far apart, writes are consecutive. */
export const transpose = kernel(
  'transpose',
  'm n',
  [axis('c', 'n'), axis('m0', 'm')],
  [x, tensor('y', 'out', 'n m')],
  [store('y', [index('c'), m], load('x', m, index('c')))],
)

export const argmaxRow = kernel(
  'argmax_row',
  'm n',
  rowsOverM,
  [x, tensor('y', 'out', 'm', 'i32')],
  [reduce('best', 'argmax', n, 'c', load('x', m, index('c')), 'i32'), store('y', [m], local('best', 'i32'))],
)

/** Concatenation: each tensor may be read only where the condition allows it. */
export const concatenate = kernel(
  'concatenate',
  'm n a b',
  rowsOverM,
  [tensor('left', 'in', 'm a'), tensor('right', 'in', 'm b'), y],
  [
    storeRow(
      'y',
      [m],
      n,
      'c',
      call(
        'select',
        call('lt', index('c'), dim('a')),
        load('left', m, index('c')),
        load('right', m, call('sub', index('c'), dim('a'))),
      ),
    ),
  ],
)

/** A row read at a neighbouring index: recomputed there. */
export const difference = kernel(
  'difference',
  'm n',
  rowsOverM,
  [x, y],
  [
    rowOf('v', n, 'c', call('mul', load('x', m, index('c')), f32(3))),
    reduce('total', 'sum', n, 'c1', element('v', index('c1'))),
    storeRow(
      'y',
      [m],
      n,
      'c2',
      call(
        'sub',
        call('select', call('gt', index('c2'), i32(0)), element('v', call('sub', index('c2'), i32(1))), f32(0)),
        local('total'),
      ),
    ),
  ],
)

/** A reduction inside an element, and one of the whole row. */
export const window = kernel(
  'window',
  'm n k',
  rowsOverM,
  [x, tensor('w', 'in', 'n k'), tensor('y', 'out', 'm n')],
  [
    reduce('top', 'max', n, 'c', load('x', m, index('c'))),
    storeRow(
      'y',
      [m],
      n,
      'c1',
      call(
        'add',
        {
          kind: 'fold',
          type: 'f32',
          monoid: 'sum',
          length: dim('k'),
          index: 'j',
          value: call('mul', load('w', index('c1'), index('j')), load('x', m, index('c1'))),
        },
        local('top'),
      ),
    ),
  ],
)

/** A length that each row reads for itself. */
export const raggedSum = kernel(
  'ragged_sum',
  'm n',
  rowsOverM,
  [x, tensor('lengths', 'in', 'm', 'i32'), tensor('y', 'out', 'm', 'f32')],
  [reduce('total', 'sum', loadInt('lengths', m), 'c', load('x', m, index('c'))), store('y', [m], local('total'))],
)

/** Loops of two lengths in one row. */
export const twoLengths = kernel(
  'two_lengths',
  'm n k',
  rowsOverM,
  [x, tensor('z', 'in', 'm k'), tensor('y', 'out', 'm k')],
  [
    reduce('total', 'sum', n, 'c', load('x', m, index('c'))),
    reduce('least', 'min', dim('k'), 'j', load('z', m, index('j'))),
    storeRow('y', [m], dim('k'), 'j1', call('mul', call('sub', load('z', m, index('j1')), local('least')), local('total'))),
  ],
)

/** INT8 storage with a float scale, in blocks of 32 columns: `(c >> 5) * 32 m + r * 32 + (c & 31)`, columns rounded up. */
const col32: Layout = {
  name: 'col32',
  axes: ['r', 'c'],
  offset: call(
    'add',
    call(
      'add',
      call('mul', call('mul', call('shiftRight', index('c'), i32(5)), i32(32)), dim('r')),
      call('mul', index('r'), i32(32)),
    ),
    call('bitAnd', index('c'), i32(31)),
  ),
  size: call('mul', call('mul', call('shiftRight', call('add', dim('c'), i32(31)), i32(5)), i32(32)), dim('r')),
}

export const quantize = kernel(
  'quantize',
  'm n',
  [axis('m0', 'm'), axis('c', 'n')],
  [x, tensor('y', 'out', 'm n', 'i8', col32)],
  [store('y', [m, index('c')], call('mul', load('x', m, index('c')), { kind: 'attr', type: 'f32', name: 'scale' }))],
  [{ name: 'scale', type: 'f32', default: 20 }],
)

/** Integers all the way, and names that C++ or the frame has taken. */
export const integers = kernel(
  'integers',
  'row int',
  [axis('i', 'row')],
  [tensor('chunk', 'in', 'row int', 'i32'), tensor('VEC', 'out', 'row', 'i32')],
  [
    reduce('abs', 'sum', dim('int'), 'for', loadInt('chunk', index('i'), index('for')), 'i32'),
    store('VEC', [index('i')], call('mod', local('abs', 'i32'), { kind: 'attr', type: 'i32', name: 'team' })),
  ],
  [{ name: 'team', type: 'i32', default: 7 }],
)

export const rowSum = kernel(
  'row_sum',
  'm n',
  rowsOverM,
  [x, tensor('y', 'out', 'm', 'f32')],
  [reduce('total', 'sum', n, 'c', load('x', m, index('c'))), store('y', [m], local('total'))],
)

const four = ['p', 'q', 'r', 's']
const sumOfFour = (at: string): Expr => four.map((name) => element(`${name}v`, index(at))).reduce((a, b) => call('add', a, b))

/** Four values of each element live from the first pass to the second. */
export const fourRows = kernel(
  'four_rows',
  'm n',
  rowsOverM,
  [...four.map((name) => tensor(name, 'in', 'm n')), y],
  [
    ...four.map((name) => rowOf(`${name}v`, n, `c_${name}`, call('exp', load(name, m, index(`c_${name}`))))),
    reduce('total', 'sum', n, 'c', sumOfFour('c')),
    storeRow('y', [m], n, 'c1', call('div', sumOfFour('c1'), local('total'))),
  ],
)

export const prefixSum = kernel(
  'prefix_sum',
  'm n',
  rowsOverM,
  [x, tensor('y', 'out', 'm n', 'f32')],
  [scan('ends', 'sum', n, 'c', load('x', m, index('c'))), storeRow('y', [m], n, 'c1', element('ends', index('c1')))],
)

const ids = loadInt('ids', m, index('c'))

/** A scan of a scan, and a reduction of both: the second pass reads them from storage. A computed row serves before and after a scan. */
export const scanOfScan = kernel(
  'scan_of_scan',
  'm n',
  rowsOverM,
  [tensor('ids', 'in', 'm n', 'i32'), tensor('y', 'out', 'm n', 'i32'), tensor('z', 'out', 'm n', 'i32')],
  [
    { kind: 'row', name: 'v', type: 'i32', length: n, index: 'c', value: call('mul', ids, i32(3)) },
    scan('ends', 'sum', n, 'c1', elementInt('v', index('c1')), 'i32'),
    scan('sums', 'sum', n, 'c2', call('add', elementInt('ends', index('c2')), elementInt('v', index('c2'))), 'i32'),
    reduce('top', 'max', n, 'c3', call('sub', elementInt('sums', index('c3')), elementInt('v', index('c3'))), 'i32'),
    storeRow('y', [m], n, 'c4', call('sub', elementInt('sums', index('c4')), local('top', 'i32'))),
    storeRow('z', [m], n, 'c5', call('sub', elementInt('ends', index('c5')), elementInt('v', index('c5')))),
  ],
)

/** Combinations other than sums, in one pass with a reduction. */
export const runningMost = kernel(
  'running_most',
  'm n',
  rowsOverM,
  [x, y, tensor('places', 'out', 'm n', 'i32'), tensor('total', 'out', 'm', 'f32')],
  [
    scan('least', 'min', n, 'c', load('x', m, index('c'))),
    scan('best', 'argmax', n, 'c1', load('x', m, index('c1')), 'i32'),
    reduce('sum', 'sum', n, 'c2', element('least', index('c2'))),
    storeRow('y', [m], n, 'c3', element('least', index('c3'))),
    storeRow('places', [m], n, 'c4', elementInt('best', index('c4'))),
    store('total', [m], local('sum')),
  ],
)

/** Elements of a scan at other indices, and of a row whose length only the row knows. */
export const scanElsewhere = kernel(
  'scan_elsewhere',
  'm n',
  rowsOverM,
  [
    tensor('ids', 'in', 'm n', 'i32'),
    tensor('lengths', 'in', 'm', 'i32'),
    tensor('y', 'out', 'm n', 'i32'),
    tensor('last', 'out', 'm', 'i32'),
  ],
  [
    scan('ends', 'sum', n, 'c', ids, 'i32'),
    scan('some', 'sum', loadInt('lengths', m), 'c1', loadInt('ids', m, index('c1')), 'i32'),
    reduce('top', 'max', loadInt('lengths', m), 'c2', elementInt('some', index('c2')), 'i32'),
    storeRow(
      'y',
      [m],
      n,
      'c3',
      call(
        'sub',
        elementInt('ends', index('c3')),
        call('select', call('gt', index('c3'), i32(0)), elementInt('ends', call('sub', index('c3'), i32(1))), i32(0)),
      ),
    ),
    store('last', [m], call('sub', elementInt('ends', call('sub', n, i32(1))), local('top', 'i32'))),
  ],
)

/** A scan read at a single index, for every element of an axis: no separate pass. */
export const scanPoint = kernel(
  'scan_point',
  'm n',
  [axis('a', 'm'), axis('b', 'n')],
  [tensor('ids', 'in', 'm n', 'i32'), tensor('y', 'out', 'm n', 'i32')],
  [
    scan('ends', 'sum', n, 'c', call('mul', loadInt('ids', index('a'), index('c')), call('add', index('b'), i32(1))), 'i32'),
    store('y', [index('a'), index('b')], elementInt('ends', index('b'))),
  ],
)

const histogram = (name: string, value: Expr, i: string): Stmt => ({
  kind: 'histogram',
  tensor: name,
  rows: [m],
  bins: dim('k'),
  length: n,
  index: i,
  value,
})

/** Two histograms of a row: of its integers, and of their distance from the largest, which takes a separate pass. */
export const tally = kernel(
  'tally',
  'm n k',
  rowsOverM,
  [tensor('ids', 'in', 'm n', 'i32'), tensor('counts', 'out', 'm k', 'i32'), tensor('below', 'out', 'm k', 'i32')],
  [
    reduce('top', 'max', n, 'c', ids, 'i32'),
    histogram('counts', loadInt('ids', m, index('c1')), 'c1'),
    histogram('below', call('sub', local('top', 'i32'), loadInt('ids', m, index('c2'))), 'c2'),
  ],
)

/** Counts of a scan's results, stored transposed: a row's counts are not adjacent. */
export const tallyScan = kernel(
  'tally_scan',
  'm n k',
  rowsOverM,
  [
    tensor('ids', 'in', 'm n', 'i32'),
    tensor('counts', 'out', 'm k', 'i32', {
      name: 'turned',
      axes: ['r', 'c'],
      offset: call('add', call('mul', index('c'), dim('r')), index('r')),
      size: call('mul', dim('r'), dim('c')),
    }),
  ],
  [scan('ends', 'sum', n, 'c', ids, 'i32'), histogram('counts', elementInt('ends', index('c1')), 'c1')],
)

export const everything: readonly Kernel[] = [
  layerNorm,
  softmax,
  pointwise,
  gatherRows,
  splitHeads,
  transpose,
  argmaxRow,
  concatenate,
  difference,
  window,
  raggedSum,
  twoLengths,
  rowSum,
  fourRows,
  quantize,
  integers,
  prefixSum,
  scanOfScan,
  runningMost,
  scanElsewhere,
  scanPoint,
  tally,
  tallyScan,
]
