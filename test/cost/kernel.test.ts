/** Prices of row kernels follow from what their schedules make: launches, sectors of strided accesses, and work that is repeated. */
import { expect, it } from 'vitest'
import { costDevice } from '../../src/cost/device.js'
import { kernelParts, partCosts } from '../../src/cost/kernel.js'
import type { Sizes } from '../../src/cost/sizes.js'
import { call, dim, index, local } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import { mapPart } from '../../src/schedule/map.js'
import { axis, kernel, layerNorm, load, loadInt, softmax, tensor } from '../schedule/fixtures.js'

const device = costDevice('h200')
const types = { T: 'f16' } as const
const sizes = { dims: { m: 4096, n: 4096 }, attrs: {} }
const square = (of: Expr): Expr => call('mul', of, of)
const seconds = (of: Kernel, at: Sizes = sizes): number =>
  kernelParts(of, types, at, device).reduce((sum, each) => sum + each.seconds, 0)

const stored = (value: Expr): Stmt => ({ kind: 'store', tensor: 'y', indices: [index('r'), index('c')], value })
const matrix = (name: string, body: readonly Stmt[]): Kernel =>
  kernel(name, 'm n', [axis('r', 'm'), axis('c', 'n')], [tensor('x', 'in', 'm n'), tensor('y', 'out', 'm n')], body)

const plain = matrix('plain', [stored(load('x', index('r'), index('c')))])

/** Every element divided by the sum of squares of all. */
const whole = matrix('whole', [
  {
    kind: 'reduce',
    name: 'total',
    type: 'f32',
    monoid: 'sum',
    length: dim('m'),
    index: 'i',
    value: {
      kind: 'fold',
      type: 'f32',
      monoid: 'sum',
      length: dim('n'),
      index: 'j',
      value: square(load('x', index('i'), index('j'))),
    },
  },
  stored(call('div', load('x', index('r'), index('c')), local('total'))),
])

const turned = kernel(
  'turned',
  'm n',
  [axis('r', 'm'), axis('c', 'n')],
  [tensor('x', 'in', 'n m'), tensor('y', 'out', 'm n')],
  [stored(load('x', index('c'), index('r')))],
)

it('the launches of a split kernel are priced one by one', () => {
  const parts = kernelParts(whole, types, sizes, device)
  expect(parts.map(({ program }) => program)).toEqual(['totals', 'elementwise'])
  const [first, second] = parts
  expect(first?.bytesRead).toBe(2 * 4096 ** 2)
  expect(second?.bytesWritten).toBe(2 * 4096 ** 2)
})

it('a reduction that every element repeats costs as often as it runs', () => {
  const at = { ...sizes, dims: { m: 256, n: 256 } }
  const [once] = kernelParts(plain, types, at, device)
  const [repeated] = partCosts(mapPart({ kernel: whole, types, dims: {} }), at, device)
  expect((repeated?.instructions ?? 0) / (once?.instructions ?? 1)).toBeGreaterThan((256 * 256) / 8)
  expect(repeated?.bound).not.toBe('memory')
})

it('a staged transpose moves its bytes once, a strided one a sector for each element', () => {
  const staged = kernelParts(turned, types, sizes, device)[0]
  const mapped = mapPart({ kernel: turned, types, dims: {} })
  if (mapped.program.kind !== 'elementwise') throw new Error('no elementwise program')
  expect(mapped.program.staging).toBeDefined()
  expect(staged?.cache).toBe(2 * 2 * 4096 ** 2)
  // Consecutive elements are m apart: no two of a warp share a sector.
  const scattered = matrix('scattered', [stored(load('x', index('r'), call('mod', call('mul', index('c'), dim('m')), dim('n'))))])
  expect(kernelParts(scattered, types, { ...sizes, dims: { m: 64, n: 4096 } }, device)[0]?.cache).toBeGreaterThan(
    4 * 64 * 4096 * 2,
  )
  expect(seconds(turned)).toBeLessThan(1.5 * seconds(plain))
})

it('few threads reach a part of the bandwidth', () => {
  const rows = kernel(
    'rows',
    'm n',
    [axis('r', 'm')],
    [tensor('x', 'in', 'm n'), tensor('y', 'out', 'm', 'f32')],
    [
      {
        kind: 'reduce',
        name: 'total',
        type: 'f32',
        monoid: 'sum',
        length: dim('n'),
        index: 'j',
        value: load('x', index('r'), index('j')),
      },
      { kind: 'store', tensor: 'y', indices: [index('r')], value: local('total') },
    ],
  )
  const of = (m: number, n: number): number => seconds(rows, { dims: { m, n }, attrs: {} })
  expect(of(1, 1 << 15)).toBeGreaterThan(1.5 * of(1 << 5, 1 << 10))
  // The blocks of the whole grid divide longer rows.
  expect(of(1, 3 * (1 << 15) + 1)).toBeLessThan(0.8 * of(1, 3 * (1 << 15)))
})

it('functions cost their instructions: exact ones in f32, fast ones where the storage type hides their error', () => {
  const exponentials = matrix('exponentials', [stored(call('exp', call('exp', call('exp', load('x', index('r'), index('c'))))))])
  const extra = (T: 'f16' | 'f32'): number => {
    const [cheap = 0, dear = 0] = [plain, exponentials].map((each) => kernelParts(each, { T }, sizes, device)[0]?.instructions)
    return (dear - cheap) / 4096 ** 2
  }
  expect(extra('f32')).toBe(3 * 10)
  expect(extra('f16')).toBeLessThan(3 * 10)
})

/** Rows of groups of k elements, less the sum of their group, in planes of s places. */
const groups = kernel(
  'groups',
  'b k s',
  [axis('b1', 'b'), axis('k1', 'k')],
  [tensor('x', 'in', 'b k s'), tensor('y', 'out', 'b k s')],
  [
    {
      kind: 'reduce',
      name: 'total',
      type: 'f32',
      monoid: 'sum',
      length: dim('k'),
      index: 'i',
      value: {
        kind: 'fold',
        type: 'f32',
        monoid: 'sum',
        length: dim('s'),
        index: 'j',
        value: load('x', index('b1'), index('i'), index('j')),
      },
    },
    {
      kind: 'storeRow',
      tensor: 'y',
      rows: [index('b1'), index('k1')],
      length: dim('s'),
      index: 'c',
      value: call('sub', load('x', index('b1'), index('k1'), index('c')), local('total')),
    },
  ],
)

it('groups that the launcher takes as rows are priced as one launch over their merged extent', () => {
  const of = (k: number, s: number) => kernelParts(groups, types, { dims: { b: 8, k, s }, attrs: {} }, device)
  const short = of(4, 256)
  expect(short.map(({ program, bytesRead }) => [program, bytesRead])).toEqual([['rows', 2 * 8 * 4 * 256]])
  expect(of(64, 65_536).map(({ program }) => program)).toEqual(['totals', 'elementwise'])
})

/** Microseconds of ops on an H200 by the length of rows, in f16 or as named. */
const measured: readonly (readonly [string, Kernel, 'f16' | 'f32', number, number, number])[] = [
  ['softmax', softmax, 'f16', 4096, 1001, 9.07],
  ['softmax', softmax, 'f16', 4096, 1024, 6.13],
  ['softmax', softmax, 'f16', 2048, 8191, 32.6],
  ['softmax', softmax, 'f16', 512, 20001, 25.8],
  ['softmax', softmax, 'f32', 4096, 1001, 12.5],
  ['layer norm', layerNorm, 'f16', 4096, 1023, 9.74],
  ['softmax', softmax, 'f16', 8192, 4094, 38],
  ['softmax', softmax, 'f16', 4096, 1002, 6.29],
  ['layer norm', layerNorm, 'f16', 8192, 4094, 44.2],
]

it.each(measured)('%s of rows that are whole or not is priced as measured: %#', (_, of, T, m, n, us) => {
  const [part] = kernelParts(of, { T }, { dims: { m, n }, attrs: { eps: 1e-5 } }, device)
  const ratio = ((part?.seconds ?? 0) * 1e6) / us
  expect(ratio).toBeGreaterThan(0.7)
  expect(ratio).toBeLessThan(1.3)
})

/** Sums over the channels of planes of s places. */
const channels = kernel(
  'channels',
  'b c s',
  [axis('b1', 'b'), axis('s1', 's')],
  [tensor('x', 'in', 'b c s'), tensor('y', 'out', 'b s', 'f32')],
  [
    {
      kind: 'reduce',
      name: 'total',
      type: 'f32',
      monoid: 'sum',
      length: dim('c'),
      index: 'i',
      value: load('x', index('b1'), index('i'), index('s1')),
    },
    { kind: 'store', tensor: 'y', indices: [index('b1'), index('s1')], value: local('total') },
  ],
)

it.each([
  [64, 256, 3025, 49.8],
  [64, 256, 3026, 29.1],
  [64, 512, 196, 7.22],
])('sums of %i planes over %i channels of %i places are priced as measured', (b, c, s, us) => {
  const ratio = (seconds(channels, { dims: { b, c, s }, attrs: {} }) * 1e6) / us
  expect(ratio).toBeGreaterThan(0.7)
  expect(ratio).toBeLessThan(1.3)
})

it('single elements of rows that are not whole take the shared cache, and a run of rows does not', () => {
  const [r, c] = [index('r'), index('c')]
  const beside = (value: Expr, ...others: Kernel['tensors']): Kernel => {
    const body = matrix('beside', [stored(value)])
    return { ...body, tensors: [...others, ...body.tensors] }
  }
  const biased = beside(call('add', load('x', r, c), load('b', c)), tensor('b', 'in', 'n'))
  const gathered = beside(load('x', loadInt('at', r), c), tensor('at', 'in', 'm', 'i32'))
  const of = (n: number, body: Kernel): number => seconds(body, { dims: { m: 8192, n }, attrs: {} })
  expect(of(3001, gathered)).toBeGreaterThan(2 * of(3000, gathered))
  expect(of(3001, plain)).toBeLessThan(1.1 * of(3000, plain))
  expect(of(3001, biased)).toBeLessThan(1.4 * of(3000, biased))
})
