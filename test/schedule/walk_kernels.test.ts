/** Columns with several walks are a kernel per walk, and one launch for few rows. */
import { describe, expect, it } from 'vitest'
import { call, dim, i32, index, local } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import { verifyKernel } from '../../src/ir/verify.js'
import { mapKernel } from '../../src/schedule/map.js'
import { walkKernels } from '../../src/schedule/rows/walk_kernels.js'
import { verifyMapped } from '../../src/schedule/verify/mapped.js'
import { axis, kernel, load, tensor } from './fixtures.js'

const [i, c, r, q] = [index('i'), index('c'), index('r'), index('q')]
const reduce = (name: string, value: Expr, length: Expr = dim('m')): Stmt => ({
  kind: 'reduce',
  name,
  type: 'f32',
  monoid: name === 'top' ? 'max' : 'sum',
  length,
  index: name === 'top' ? 'r' : 'q',
  value,
})
const shifted = call('sub', load('x', q, c), local('top'))
const of = (body: readonly Stmt[], rows = [axis('i', 'm'), axis('c', 'n')]): Kernel =>
  kernel('walked', 'm n', rows, [tensor('x', 'in', 'm n'), tensor('y', 'out', rows.length === 2 ? 'm n' : 'n')], body)
const softmax = (length?: Expr): Kernel =>
  of([
    reduce('top', load('x', r, c), length),
    reduce('total', call('exp', shifted), length),
    {
      kind: 'store',
      tensor: 'y',
      indices: [i, c],
      value: call('div', call('exp', call('sub', load('x', i, c), local('top'))), local('total')),
    },
  ])
const store: Stmt = { kind: 'store', tensor: 'y', indices: [c], value: local('total') }
const instance = (subject: Kernel, dims = {}) => ({ kernel: subject, types: { T: 'f16' }, dims }) as const

describe('walks over columns', () => {
  it('are kernels whose results the later ones read', () => {
    const kernels = walkKernels(instance(softmax())) ?? []
    for (const each of kernels) verifyKernel(each, 'a test')
    expect(kernels.map(({ tensors }) => tensors.map(({ name }) => name))).toEqual([
      ['x', 'top_once'],
      ['x', 'top_once', 'total_once'],
      ['x', 'top_once', 'total_once', 'y'],
    ])
    const levels = of([reduce('top', load('x', r, c)), reduce('total', shifted), store], [axis('c', 'n')])
    expect(walkKernels(instance(levels))?.length).toBe(2)
  })

  it('are one kernel where there is one walk, or no column program', () => {
    expect(walkKernels(instance(of([reduce('total', load('x', q, c)), store], [axis('c', 'n')])))).toBeUndefined()
    expect(walkKernels(instance(of([{ ...store, value: load('x', i32(0), c) } as Stmt], [axis('c', 'n')])))).toBeUndefined()
  })

  it('are one launch for few rows, for many columns, and where the rows are known to be few', () => {
    const { split } = mapKernel(instance(softmax()))
    expect(split?.before.map(({ program }) => program.kind)).toEqual(['columns', 'columns'])
    expect(split?.inRows).toMatchObject({ kept: 8191, groups: 512, mapped: { program: { kind: 'columns' } } })
    expect(mapKernel(instance(softmax(), { m: 4096 })).split).toBeUndefined()
    expect(mapKernel(instance(softmax(), { m: 16384 })).split).toBeDefined()
  })

  it('are refused by their verifier in place of another kernel', () => {
    const mapped = mapKernel(instance(softmax()))
    const other = mapKernel(instance(of([reduce('total', load('x', q, c)), store], [axis('c', 'n')])))
    const { split } = mapped
    if (split?.inRows === undefined) throw new Error('one launch')
    const { kernel: own } = other.instance
    const renamed = { ...own, tensors: own.tensors.map((each) => ({ ...each, name: `${each.name}2` })) }
    const inRows = { ...split.inRows, mapped: { ...other, instance: { ...other.instance, kernel: renamed } } }
    expect(() => verifyMapped({ ...mapped, split: { ...split, inRows } }, 'mapping')).toThrow('takes in x2, out y2')
  })
})
