/** Reductions across rows become column programs where neighbours of an axis lie together, and only there. */
import { describe, expect, it } from 'vitest'
import { call, dim, f32, i32, index, local } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import { eachPass } from '../../src/loop/kernel_loops.js'
import { describeSchedule } from '../../src/schedule/describe.js'
import { columnsOf } from '../../src/schedule/divided/column_reductions.js'
import { programNames } from '../../src/schedule/divided/divided_program.js'
import { mapKernel } from '../../src/schedule/map.js'
import type { MappedKernel } from '../../src/schedule/mapped.js'
import { problemOf } from '../../src/schedule/tuning/choice.js'
import { verifyMapped } from '../../src/schedule/verify/mapped.js'
import { axis, kernel, load, tensor } from './fixtures.js'

const [r, c] = [index('r'), index('c')]
const fold = (value: Expr, length: Expr = dim('m'), name = 'r'): Expr => ({
  kind: 'fold',
  type: 'f32',
  monoid: 'sum',
  length,
  index: name,
  value,
})

/** For each column, the sum of `value` over the rows. */
const reduced = (value: Expr, length: Expr = dim('m')): Kernel =>
  kernel(
    'reduced',
    'm n',
    [axis('c', 'n')],
    [tensor('x', 'in', 'm n'), tensor('t', 'in', 'n m'), tensor('w', 'in', 'm'), tensor('y', 'out', 'n')],
    [
      { kind: 'reduce', name: 'total', type: 'f32', monoid: 'sum', length, index: 'r', value },
      { kind: 'store', tensor: 'y', indices: [c], value: local('total') },
    ],
  )

/** The same, an element of a row each. */
const folded = (value: Expr): Kernel => ({
  ...reduced(value),
  rows: [],
  body: [{ kind: 'storeRow', tensor: 'y', rows: [], length: dim('n'), index: 'c', value }],
})

const instance = (subject: Kernel, T: 'f32' | 'f16' = 'f32') => ({ kernel: subject, types: { T }, dims: {} })

describe('column programs', () => {
  it('use chunks of columns, as many as fill 16 bytes, and partial results in registers', () => {
    const f32 = columnsOf(instance(reduced(load('x', r, c))))
    expect(f32).toMatchObject({ vec: 4, axes: [], program: { parts: 8, column: { index: 'c', dim: 'n' } } })
    const f16 = columnsOf(instance(reduced(call('mul', load('x', r, c), load('w', r))), 'f16'))
    expect(f16).toMatchObject({ vec: 8, program: { parts: 8 } })
    const two = columnsOf(instance(folded(call('add', fold(load('x', r, c)), fold(call('square', load('x', r, c))))), 'f16'))
    expect(two?.program).toMatchObject({ parts: 4 })
    expect(two?.program.sequence[0]).toMatchObject({ loads: [{ isWhole: true }], reductions: [{}, {}] })
  })

  it('compute shared values of several elements once', () => {
    const twice = columnsOf(instance(folded(call('mul', fold(load('x', r, c)), fold(load('x', r, c))))))
    expect(twice?.program.sequence[0]).toMatchObject({ reductions: [{ stmt: { monoid: 'sum' } }] })
  })

  it('compute named values of a reduction after its pass', () => {
    const subject = reduced(load('x', r, c))
    const mean = call('div', local('total'), f32(2))
    const named: Kernel = {
      ...subject,
      body: [
        ...subject.body.slice(0, 1),
        { kind: 'let', name: 'mean', type: 'f32', value: mean },
        { kind: 'store', tensor: 'y', indices: [c], value: local('mean') },
      ],
    }
    const { sequence = [] } = columnsOf(instance(named))?.program ?? {}
    expect(sequence.map(({ kind }) => kind)).toEqual(['pass', 'let', 'store'])
    expect(programNames({ sequence })).toEqual(['r', 'x_c', 'total', 'mean'])
  })

  it('have no choice of a schedule', () => {
    const mapped = mapKernel(instance(reduced(load('x', r, c))))
    expect(problemOf({ kind: 'elementwise', vec: 4, threads: 128 }, mapped, 768)).toContain('the kernel has column programs')
  })

  it('read the rows again if a reduction needs another', () => {
    const mean = fold(load('x', r, c))
    const deviation = fold(call('sub', load('x', index('q'), c), mean), dim('m'), 'q')
    // A fold inside of another that does not depend on its index is a separate pass.
    expect(columnsOf(instance(folded(deviation)))?.program.sequence.map(({ kind }) => kind)).toEqual(['pass', 'pass', 'store'])
    const subject = reduced(load('x', r, c))
    const again: Kernel = {
      ...subject,
      body: [
        ...subject.body.slice(0, 1),
        {
          kind: 'reduce',
          name: 'squares',
          type: 'f32',
          monoid: 'sum',
          length: dim('m'),
          index: 'q',
          value: call('square', call('sub', load('x', index('q'), c), local('total'))),
        },
        { kind: 'store', tensor: 'y', indices: [c], value: local('squares') },
      ],
    }
    expect(describeSchedule(mapKernel(instance(again)))).toContain('squares = sum of square(x_c[c] - total)')
    expect(columnsOf(instance(again))?.program.sequence.map(({ kind }) => kind)).toEqual(['pass', 'pass', 'store'])
    // Each pass loads its own inputs.
    const other = (stmt: Stmt): Stmt =>
      stmt.kind === 'reduce' && stmt.name === 'squares'
        ? { ...stmt, value: call('mul', load('z', index('q'), c), local('total')) }
        : stmt
    const made = columnsOf(
      instance({ ...again, tensors: [tensor('z', 'in', 'm n'), ...again.tensors], body: again.body.map(other) }),
    )
    const loaded = made?.program.sequence.flatMap((step) =>
      step.kind === 'pass' ? [step.loads.map(({ load: of }) => of.tensor)] : [],
    )
    expect(loaded).toEqual([['x'], ['z']])
  })

  it('load only the rows that count, if that follows from the row without its columns', () => {
    const walk = (value: Expr) => columnsOf(instance(reduced(value)))?.program.sequence[0]
    const counts = call('eq', call('toInt', load('w', r)), i32(3))
    const of = (condition: Expr, other: Expr) => walk(call('select', condition, load('x', r, c), other))
    expect(of(counts, f32(0))).toMatchObject({ when: counts, loads: [{ name: 'x_c' }] })
    expect(describeSchedule(mapKernel(instance(reduced(call('select', counts, load('x', r, c), f32(0))))))).toContain(
      'walk over r < m where toInt(w[r]) === 3',
    )
    // Something else than nothing is added, or columns differ in which rows count.
    expect(of(counts, f32(1))).not.toHaveProperty('when')
    expect(of(call('lt', load('x', r, c), f32(3)), f32(0))).not.toHaveProperty('when')
    expect(of(call('lt', c, i32(3)), f32(0))).not.toHaveProperty('when')
  })

  it.each<[string, Kernel]>([
    ['columns are rows in memory', reduced(load('t', c, r))],
    ['nothing lies along the columns', reduced(load('w', r))],
    ['one of the reads is scattered', reduced(call('mul', load('x', r, c), load('t', c, r)))],
    ['only the column itself knows how many rows it has', reduced(load('x', r, c), call('toInt', load('w', c)))],
    ['some elements alone need the reduction', folded(call('select', call('lt', c, i32(3)), fold(load('x', r, c)), f32(0)))],
    ['rows are few', reduced(load('x', r, c), i32(4))],
    [
      'each element of a window has a sum of its own',
      {
        ...reduced(load('x', r, c)),
        rows: [axis('i', 'm'), axis('j', 'm'), axis('c', 'n')],
      },
    ],
  ])('are none where %s', (_, subject) => {
    expect(columnsOf(instance(subject))).toBeUndefined()
  })

  it('are refused by their verifier if a pass reads a value that it does not load', () => {
    const mapped = mapKernel(instance(reduced(load('x', r, c))))
    const { program } = mapped
    if (program.kind !== 'columns') throw new Error('no column program')
    const without = (changes: object): MappedKernel => ({
      ...mapped,
      program: { ...program, sequence: program.sequence.map((s) => (s.kind === 'pass' ? { ...s, ...changes } : s)) },
    })
    verifyMapped(mapped, 'mapping')
    expect(() => eachPass(without({ loads: [] }), () => undefined)).toThrow('an element of x_c is read before it is computed')
    expect(() => verifyMapped(without({ reductions: [] }), 'mapping')).toThrow('a walk reduces nothing')
    expect(() => verifyMapped({ ...mapped, program: { ...program, parts: 3 } }, 'mapping')).toThrow('3 parts')
    expect(() => verifyMapped({ ...mapped, program: { ...program, each: 2 } }, 'mapping')).toThrow('2 chunks of each part')
    const ofColumns = { kind: 'element', type: 'f32', row: 'x_c', index: c } as const
    const asked = without({ when: call('lt', ofColumns, f32(1)) })
    expect(() => eachPass(asked, () => undefined)).toThrow('an element of x_c is read before it is computed')
    expect(() => verifyMapped({ ...mapped, vec: 2 }, 'mapping')).toThrow('chunks of 2 columns')
  })
})
