/** The verifier accepts a correct kernel, and for each rule refuses a twin that breaks it. */
import { describe, expect, it } from 'vitest'
import { constant, dim, f32, i32, index, local } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import { type Layout, rowMajor } from '../../src/ir/layout.js'
import { verifyKernel, verifyLayout } from '../../src/ir/verify.js'
import { centre, element, load, running, tally } from './kernels.js'

const [row, reduce, mean, storeRow, store] = centre.body as [Stmt, Stmt, Stmt, Stmt, Stmt]
const [x, ids, y, out] = centre.tensors as [
  Kernel['tensors'][0],
  Kernel['tensors'][0],
  Kernel['tensors'][0],
  Kernel['tensors'][0],
]

/** The kernel with its mean computed by another expression. */
const withMean = (value: Expr): Partial<Kernel> => ({ body: [row, reduce, { ...mean, value } as Stmt, storeRow, store] })
const withCall = (fn: 'add' | 'exp', type: 'f32' | 'i32', ...args: Expr[]): Partial<Kernel> =>
  withMean({ kind: 'call', type, fn, args })

const twins: readonly (readonly [rule: string, change: Partial<Kernel>, problem: string])[] = [
  ['names are unique', { rows: [{ index: 'm', dim: 'm' }] }, 'name m is introduced twice'],
  ['statement names are unique', { body: [row, { ...reduce, name: 'v' } as Stmt] }, 'name v is introduced twice'],
  ['loop indices are unique', { body: [row, { ...reduce, index: 'c' } as Stmt] }, 'name c is introduced twice'],
  ['rows span known dimensions', { rows: [{ index: 'r', dim: 'k' }] }, 'row index r spans unknown dimension k'],
  ['tensors have known dimensions', { tensors: [{ ...x, dims: ['m', 'k'] }, ids, y, out] }, 'tensor x has unknown dimension k'],
  [
    'layouts have the rank of the tensor',
    { tensors: [{ ...x, layout: rowMajor(['m']) }, ids, y, out] },
    'tensor x of rank 2 is in a layout of 1 axes',
  ],
  ['inputs come first', { tensors: [x, y, ids, out] }, 'an input follows an output'],
  ['type parameters are declared', { types: {} }, 'type parameter T is not declared'],
  ['type parameters have one scalar', { types: { T: ['f32', 'i32'] } }, 'storage types f32, i32 mix floats and integers'],
  ['constants fit their type', withMean(constant('f32', true)), 'constant true is not f32'],
  [
    'integer constants are integers',
    withMean({ kind: 'call', type: 'f32', fn: 'toFloat', args: [constant('i32', 0.5)] }),
    'constant 0.5 is not i32',
  ],
  [
    'dimensions are declared',
    withMean({ kind: 'call', type: 'f32', fn: 'toFloat', args: [dim('k')] }),
    'dimension k is not declared',
  ],
  ['attributes are declared', withMean({ kind: 'attr', type: 'f32', name: 'k' }), 'attribute k is not declared'],
  ['locals are bound', withMean(local('k')), 'local k is not in scope'],
  ['locals are bound before they are read', { body: [row, mean, reduce, storeRow, store] }, 'local total is not in scope'],
  ['loop indices end with their loop', withMean(load('x', index('r'), index('c'))), 'index c is not in scope'],
  ['rows are rows', withMean(local('v')), 'v is read as local, but is row'],
  [
    'row indices are integers',
    withMean({ kind: 'element', type: 'f32', row: 'v', index: f32(0) }),
    'index or length 0.0 is f32, not i32',
  ],
  ['loads read inputs', withMean(load('y', index('r'), i32(0))), 'y is not an input'],
  ['loads have the rank of the tensor', withMean(load('x', index('r'))), 'x[r] has 1 indices, the rank is 2'],
  ['loads have integer indices', withMean(load('x', index('r'), f32(1))), 'index or length 1.0 is f32, not i32'],
  ['calls have a signature', withCall('add', 'f32', f32(1), i32(1)), 'add takes no (f32, i32)'],
  ['calls have the arity of a signature', withCall('exp', 'f32', f32(1), f32(1)), 'exp takes no (f32, f32)'],
  ['calls have the type of their signature', withCall('add', 'f32', i32(1), i32(1)), '1 + 1 is i32, but says f32'],
  [
    'folds do not bind a name again',
    withMean({ kind: 'fold', type: 'f32', monoid: 'sum', length: dim('n'), index: 'r', value: f32(1) }),
    'index r is bound twice',
  ],
  [
    'folds have integer lengths',
    withMean({ kind: 'fold', type: 'f32', monoid: 'sum', length: f32(1), index: 'k', value: f32(1) }),
    'index or length 1.0 is f32, not i32',
  ],
  [
    'folds have the type of their monoid',
    withMean({ kind: 'fold', type: 'f32', monoid: 'argmax', length: dim('n'), index: 'k', value: f32(1) }),
    'argmax(k < n: 1.0) is i32, but says f32',
  ],
  [
    'reductions reduce numbers',
    { body: [row, { ...reduce, value: constant('bool', true) } as Stmt] },
    'sum does not reduce bool',
  ],
  ['statements have the type of their value', { body: [{ ...row, type: 'i32' } as Stmt] }, 'v is f32, but says i32'],
  ['stores write outputs', { body: [{ ...store, tensor: 'x', value: f32(1) } as Stmt] }, 'x is not an output'],
  [
    'stores have the rank of the tensor',
    { body: [row, { ...storeRow, rows: [], value: element('v', 'e') } as Stmt] },
    'the store to y has 1 indices, the rank is 2',
  ],
  [
    'stores have the type of the tensor',
    { body: [{ ...store, value: i32(1) } as Stmt] },
    'the store to mean is i32, the tensor holds f32',
  ],
  ['every output is stored', { body: [row, reduce, mean, storeRow] }, 'output mean is stored 0 times'],
  ['every output is stored once', { body: [row, reduce, mean, storeRow, store, store] }, 'output mean is stored 2 times'],
]

describe('verifyKernel', () => {
  it('accepts a valid kernel', () => expect(() => verifyKernel(centre, 'test')).not.toThrow())
  it.each(twins)('%s', (_, change, problem) => {
    expect(() => verifyKernel({ ...centre, ...change }, 'fusion')).toThrow(`internal: after fusion: kernel centre: ${problem}`)
  })
})

describe('scans', () => {
  const [ends, ...rest] = running.body as [Stmt, ...Stmt[]]
  const broken: readonly (readonly [rule: string, scan: Partial<Stmt>, problem: string])[] = [
    ['combine numbers', { value: constant('bool', true) }, 'sum does not reduce bool'],
    ['have the type of their monoid', { monoid: 'argmax' }, 'ends is i32, but says f32'],
    ['have integer lengths', { length: f32(1) }, 'index or length 1.0 is f32, not i32'],
    ['do not read themselves', { value: element('ends', 'c') }, 'row ends is not in scope'],
    ['have a name of their own', { name: 'm' }, 'name m is introduced twice'],
  ]
  it('are accepted', () => expect(() => verifyKernel(running, 'test')).not.toThrow())
  it.each(broken)('%s', (_, change, problem) =>
    expect(() => verifyKernel({ ...running, body: [{ ...ends, ...change } as Stmt, ...rest] }, 'test')).toThrow(
      `internal: after test: kernel running: ${problem}`,
    ),
  )
  it('are rows', () => {
    const wrong = rest.map((stmt) => (stmt.kind === 'store' ? { ...stmt, value: local('ends') } : stmt))
    expect(() => verifyKernel({ ...running, body: [ends, ...wrong] }, 'test')).toThrow('ends is read as local, but is row')
  })
})

describe('histograms', () => {
  const [counted] = tally.body as [Stmt]
  const [given, counts] = tally.tensors as [Kernel['tensors'][0], Kernel['tensors'][0]]
  const broken: readonly (readonly [rule: string, change: Partial<Kernel>, problem: string])[] = [
    ['count integers', { body: [{ ...counted, value: f32(1) } as Stmt] }, 'a histogram counts integers'],
    ['have integer bins', { body: [{ ...counted, bins: f32(1) } as Stmt] }, 'index or length 1.0 is f32, not i32'],
    [
      'have the rank of the output',
      { body: [{ ...counted, rows: [] } as Stmt] },
      'the store to counts has 1 indices, the rank is 2',
    ],
    ['are integers', { tensors: [given, { ...counts, dtype: 'f32' }] }, 'the store to counts is i32, the tensor holds f32'],
    [
      'store their output',
      { body: [counted, { ...counted, index: 'd', value: index('d') } as Stmt] },
      'output counts is stored 2 times',
    ],
  ]
  it('are accepted', () => expect(() => verifyKernel(tally, 'test')).not.toThrow())
  it.each(broken)('%s', (_, change, problem) =>
    expect(() => verifyKernel({ ...tally, ...change }, 'test')).toThrow(`internal: after test: kernel tally: ${problem}`),
  )
})

describe('verifyLayout', () => {
  const layout = rowMajor(['r', 'c'])
  const broken: readonly (readonly [rule: string, layout: Layout, problem: string])[] = [
    ['axes are distinct', { ...rowMajor(['r', 'n']), axes: ['r', 'r'] }, 'an axis is named twice'],
    ['offsets are integers', { ...layout, offset: f32(0) }, 'index or length 0.0 is f32, not i32'],
    ['offsets use their own axes', { ...layout, offset: index('k') }, 'index k is not in scope'],
    ['sizes use their own extents', { ...layout, size: dim('k') }, 'dimension k is not declared'],
    ['sizes use no index', { ...layout, size: index('r') }, 'index r is not in scope'],
  ]
  it('accepts row-major', () => expect(() => verifyLayout(layout, 'test')).not.toThrow())
  it.each(broken)('%s', (_, twin, problem) =>
    expect(() => verifyLayout(twin, 'test')).toThrow(`internal: after test: layout row: ${problem}`),
  )
})
