/** Windows that are written out: lengths, conditions inside of tensors, and look-alikes that stay as they are. */
import { describe, expect, it } from 'vitest'
import { call, dim, f32, i32, index, local } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import { noFacts } from '../../src/ir/facts/facts.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import { verifyKernel } from '../../src/ir/verify.js'
import { storedColumns } from '../../src/schedule/divided/stored_columns.js'
import { mapKernel } from '../../src/schedule/map.js'
import { verifyMapped } from '../../src/schedule/verify/mapped.js'
import { insideOf } from '../../src/schedule/windows/inside.js'
import { windowsWrittenOut } from '../../src/schedule/windows/windows.js'
import { simplified } from '../../src/schedule/windows/written_out.js'
import { axis, kernel, load, tensor } from './fixtures.js'

const [i, j, u] = [index('i'), index('j'), index('u')]
const beside = call('sub', call('add', i, u), i32(1))
const isInside = call('and', call('ge', beside, i32(0)), call('lt', beside, dim('m')))
const guarded = call('select', isInside, load('x', beside, j), f32(0))
const summed = (value: Expr, length: Expr = i32(3), monoid: 'sum' | 'argmax' = 'sum'): Stmt => ({
  kind: 'reduce',
  name: 'total',
  type: monoid === 'sum' ? 'f32' : 'i32',
  monoid,
  length,
  index: 'u',
  value,
})
const of = (sum: Stmt, stored: Expr = local('total'), at: readonly Expr[] = [i, j]): Kernel =>
  kernel(
    'window',
    'm n k',
    [axis('i', 'm'), axis('j', 'n')],
    [tensor('x', 'in', 'm n'), tensor('y', 'out', 'm n')],
    [sum, { kind: 'store', tensor: 'y', indices: at, value: stored }],
  )
const instance = (subject: Kernel) => ({ kernel: subject, types: { T: 'f16' }, dims: {} }) as const
const written = (subject: Kernel) => windowsWrittenOut(instance(subject))

describe('a window', () => {
  it('stores several places of a point, of which each load is made once', () => {
    const made = written(of(summed(guarded)))
    if (made === undefined) throw new Error('no windows')
    verifyKernel(made.instance.kernel, 'a test')
    expect(made.stated).toEqual({})
    expect(made.instance.kernel).toMatchObject({ storedPlaces: 4, dims: ['m', 'n', 'k', 'm/4'] })
    expect(made.instance.kernel.body.map(({ kind }) => kind)).toEqual([...Array(6).fill('row'), ...Array(4).fill('storeRow')])
    expect(() => verifyKernel({ ...made.instance.kernel, storedPlaces: 3 }, 'a test')).toThrow('output y is stored 4 times')
  })

  it('may be a short sum of loads that many elements share', () => {
    const pairs = (length: number, ...loads: readonly Expr[]): Kernel =>
      of(
        summed(
          loads.reduce((a, b) => call('mul', a, b)),
          i32(length),
        ),
      )
    const [ofRow, ofColumn] = [load('x', i, u), load('x', u, j)]
    expect(written(pairs(8, ofRow, ofColumn))?.instance.kernel).toMatchObject({ storedPlaces: 4 })
    expect(written(pairs(9, ofRow, ofColumn))?.instance.kernel.storedPlaces).toBeUndefined()
    // A load that is for one element, and one that is the same for all.
    expect(written(pairs(3, ofRow, load('x', i, j)))?.instance.kernel.storedPlaces).toBeUndefined()
    expect(written(pairs(3, ofRow))?.instance.kernel.storedPlaces).toBeUndefined()
  })

  it('takes lengths that facts state as numbers', () => {
    const subject = of(summed(guarded, dim('k')))
    expect(written(subject)).toBeUndefined()
    const stated = { ...subject, facts: { ...noFacts, dims: { k: { equal: 3 } } } }
    expect(written(stated)?.stated).toEqual({ k: 3 })
    const mapped = mapKernel(instance(stated))
    expect(mapped.split?.fixed?.map(({ dims }) => dims)).toEqual([{ k: 3 }])
    const { split } = mapped
    if (split?.fixed === undefined) throw new Error('no fixed sizes')
    const other = { ...mapped, split: { ...split, fixed: split.fixed.map((each) => ({ ...each, dims: { k: 4 } })) } }
    expect(() => verifyMapped(other, 'a test')).toThrow('window does not take k as 4')
  })

  it.each([
    ['of many places', of(summed(guarded, i32(17)))],
    ['that is no window', of(summed(load('x', u, j)))],
    ['whose places have an order', of(summed(guarded, i32(3), 'argmax'), call('toFloat', local('total', 'i32')))],
    ['whose result lies across', of(summed(guarded), local('total'), [j, i])],
  ])('%s stays as it is', (_, subject) => {
    expect(written(subject)).toBeUndefined()
  })

  it('has a version inside of the tensor, without the conditions of a point', () => {
    const made = written(of(summed(guarded)))
    const { kernel: whole } = made?.instance ?? { kernel: undefined }
    if (whole === undefined) throw new Error('no windows')
    const inside = insideOf(whole, new Set(whole.rows.map(({ index: name }) => name)))
    expect(inside?.kernel.body.every((s) => s.kind !== 'row' || s.value.kind === 'load')).toBe(true)
    expect(inside?.kernel.body.every((s) => s.kind !== 'storeRow' || s.when === undefined)).toBe(true)
  })

  it('knows conditions of numbers, and those of an axis', () => {
    expect(simplified(call('lt', j, dim('n')), axis('j', 'n'))).toMatchObject({ kind: 'const', value: true })
    expect(simplified(call('lt', j, dim('m')), axis('j', 'n'))).toMatchObject({ kind: 'call' })
    expect(simplified(call('ge', call('sub', j, i32(1)), i32(0)))).toMatchObject({ kind: 'call' })
    expect(simplified(call('select', call('lt', i32(2), i32(1)), f32(1), f32(0)))).toMatchObject({ value: 0 })
  })
})

it('columns that store nothing of a group are elements', () => {
  const plain = kernel(
    'plain',
    'm n',
    [axis('i', 'm'), axis('j', 'n')],
    [tensor('x', 'in', 'm n'), tensor('y', 'out', 'm n')],
    [{ kind: 'store', tensor: 'y', indices: [i, j], value: load('x', i, j) }],
  )
  expect(storedColumns(instance(plain))).toBeUndefined()
})
