/** Notes that follow from sizes: rows that are too few for the blocks of a device. */
import { expect, it } from 'vitest'
import { costDevice } from '../../src/cost/device.js'
import { pricedNotes } from '../../src/cost/notes.js'
import { call, dim, i32, index, local } from '../../src/ir/build.js'
import type { Expr, ExprOf } from '../../src/ir/expr.js'
import type { Kernel, Stmt, StmtOf } from '../../src/ir/kernel.js'
import { mapKernel } from '../../src/schedule/map.js'
import { axis, kernel, load, tensor } from '../schedule/fixtures.js'

const device = costDevice('h200')
const [r, c] = [index('r'), index('c')]
const total: Stmt = {
  kind: 'reduce',
  name: 'total',
  type: 'f32',
  monoid: 'sum',
  length: dim('n'),
  index: 'i',
  value: load('x', r, index('i')),
}
const running: StmtOf<'scan'> = {
  kind: 'scan',
  name: 'running',
  type: 'f32',
  monoid: 'sum',
  length: dim('n'),
  index: 'i',
  value: load('x', r, index('i')),
}
const stored = (value: Parameters<typeof call>[1]): Stmt => ({
  kind: 'storeRow',
  tensor: 'y',
  rows: [r],
  length: dim('n'),
  index: 'c',
  value,
})
const notes = (body: readonly Stmt[], m: number, n: number): readonly string[] => {
  const subject = kernel('rows', 'm n', [axis('r', 'm')], [tensor('x', 'in', 'm n'), tensor('y', 'out', 'm n')], body)
  return pricedNotes(mapKernel({ kernel: subject, types: { T: 'f16' }, dims: {} }), { dims: { m, n }, attrs: {} }, device)
}
const shares = [total, stored(call('div', load('x', r, c), local('total')))]

it('a note tells that few long rows leave most of a device idle, and how blocks divide them', () => {
  const [only, ...others] = notes(shares, 6, 60_003)
  expect(others).toEqual([])
  expect(only).toMatch(/^a block computes each row, and 6 blocks leave 126 of 132 multiprocessors idle; write a row as two axes/)
  expect(only).toMatch(/predicted: \d+\.\d us, of which its bytes, moved once, take \d+\.\d us$/)
})

it('rows that the blocks of the whole grid divide have none', () => expect(notes(shares, 6, 1_000_003)).toEqual([]))

const elementOf = (row: string): ExprOf<'element'> => ({ kind: 'element', type: 'f32', row, index: c })

it('scans of few rows are divided, too', () => expect(notes([running, stored(elementOf('running'))], 16, 1_000_000)).toEqual([]))

it('scans of scans of few rows have no such repair', () => {
  const again: Stmt = { ...running, name: 'again', value: { ...elementOf('running'), index: index('i') } }
  const [only = ''] = notes([running, again, stored(elementOf('again'))], 16, 1_000_000)
  expect(only).toMatch(/^a block computes each row, and 16 blocks leave 116 of 132 multiprocessors idle; predicted/)
})

it('many rows have no note, and few short ones neither', () => {
  expect(notes(shares, 4096, 100_000)).toEqual([])
  expect(notes(shares, 6, 4096)).toEqual([])
})

it('a window that is a sum has a note, written out it has none', () => {
  const [b, h, w, u, v] = ['b', 'h', 'w', 'u', 'v'].map(index)
  if (b === undefined || h === undefined || w === undefined || u === undefined || v === undefined) throw new Error('no index')
  const at = (p: Expr, q: Expr): Expr => call('mul', load('x', b, call('add', h, p), call('add', w, q)), load('k', p, q))
  const fold = (index: string, value: Expr): Expr => ({
    kind: 'fold',
    type: 'f32',
    monoid: 'sum',
    length: dim(index),
    index,
    value,
  })
  const of = (value: Expr): Kernel =>
    kernel(
      'window',
      'm n p q u v',
      [axis('b', 'm'), axis('h', 'n'), axis('w', 'p')],
      [tensor('x', 'in', 'm q p'), tensor('k', 'in', 'u v'), tensor('y', 'out', 'm n p')],
      [{ kind: 'store', tensor: 'y', indices: [b, h, w], value }],
    )
  const sizes = { dims: { m: 2048, n: 56, p: 56, q: 58, u: 3, v: 3 }, attrs: {} }
  const of16 = (value: Expr) => pricedNotes(mapKernel({ kernel: of(value), types: { T: 'f16' }, dims: {} }), sizes, device)
  expect(of16(fold('u', fold('v', at(u, v))))).toEqual([expect.stringMatching(/^a thread computes one element.*predicted/)])
  expect(of16(call('add', at(i32(0), i32(0)), at(i32(0), i32(1))))).toEqual([])
})
