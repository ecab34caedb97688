/** Ranking and sharing of rows: the threads that do it, its pass, and the schedules that allow it. */
import { describe, expect, it } from 'vitest'
import { HeddleError } from '../../src/errors.js'
import { call, dim, f32, i32, index } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Stmt } from '../../src/ir/kernel.js'
import type { Schedule } from '../../src/lang/plan.js'
import { describeSchedule } from '../../src/schedule/describe.js'
import { mapKernel } from '../../src/schedule/map.js'
import { axis, kernel, load, tensor } from './fixtures.js'
import { ranked } from './ranked.js'

const map = (schedule?: Schedule) => mapKernel({ kernel: ranked, types: {}, dims: { k: 4 } }, undefined, schedule)

describe('a kernel that ranks', () => {
  it('waits for the ranking before it reads it, and shares its folds', () => {
    const text = describeSchedule(map())
    expect(text).toContain('best, at = top 4 of x_c[c], in shared memory')
    expect(text).toContain('again, againAt = top 4 of -toFloat(at[d]), in shared memory')
    expect(text).toContain('total = sum(')
    expect(text.indexOf('again, againAt')).toBeGreaterThan(text.indexOf('best, at'))
  })

  it('takes whole warps and blocks only', () => {
    const { program } = map()
    const teams = program.kind === 'rows' ? program.variants.map(({ team }) => team) : []
    expect(teams.length).toBeGreaterThan(2)
    expect(teams.every((team) => team.kind === 'block' || (team.kind === 'warp' && team.lanes === 32))).toBe(true)
  })

  it('refuses a schedule of threads or parts of a warp', () => {
    for (const team of [
      { kind: 'thread', rowsPerBlock: 128 },
      { kind: 'warp', lanes: 8, rowsPerBlock: 16 },
    ] as const) {
      expect(() => map({ kind: 'rows', team, chunks: 'reread' })).toThrow(HeddleError)
      expect(() => map({ kind: 'rows', team, chunks: 'reread' })).toThrow(
        'the kernel ranks rows, which needs a block or all 32 lanes',
      )
    }
    expect(() => map({ kind: 'rows', team: { kind: 'block', lanes: 64 }, chunks: 'reread' })).not.toThrow()
  })

  it('cannot be mapped before its count is fixed', () => {
    expect(() => mapKernel({ kernel: ranked, types: {}, dims: {} })).toThrow('the number of elements best ranks is not fixed')
  })
})

it('knows the longest a part of a row may be', () => {
  const part = call('minimum', dim('n'), call('sub', dim('n'), index('m')))
  const parts = kernel(
    'parts',
    'm n',
    [axis('m', 'm')],
    [tensor('x', 'in', 'm n', 'f32'), tensor('y', 'out', 'm', 'f32')],
    [
      {
        kind: 'reduce',
        name: 's',
        type: 'f32',
        monoid: 'sum',
        length: part,
        index: 'c',
        value: load('x', index('m'), index('c')),
      },
      { kind: 'store', tensor: 'y', indices: [index('m')], value: { kind: 'local', type: 'f32', name: 's' } },
    ],
  )
  const { program } = mapKernel({ kernel: parts, types: {}, dims: {} })
  expect(program.kind === 'rows' ? program.lengths : undefined).toEqual([dim('n')])
})

describe('a short row of folds that elements of a row axis pick from', () => {
  const picked: Expr = { kind: 'element', type: 'f32', row: 'w', index: i32(1) }
  const fold = (value: Expr): Expr => ({ kind: 'fold', type: 'f32', monoid: 'sum', length: i32(3), index: 'j', value })
  const scheduleOf = (value: Expr, stored: Stmt): string => {
    const row: Stmt = { kind: 'row', name: 'w', type: 'f32', length: i32(4), index: 'k', value: fold(value) }
    const axes = [axis('r', 'm'), axis('c', 'n')]
    const tensors = [tensor('x', 'in', 'm n', 'f32'), tensor('y', 'out', 'm n', 'f32')]
    return describeSchedule(mapKernel({ kernel: kernel('picking', 'm n', axes, tensors, [row, stored]), types: {}, dims: {} }))
  }
  const store: Stmt = { kind: 'store', tensor: 'y', indices: [index('r'), index('c')], value: load('x', index('r'), index('c')) }

  it('is shared if only a condition or an index selects from it', () => {
    const value = call('toFloat', call('mul', index('k'), index('j')))
    expect(scheduleOf(value, { ...store, when: call('gt', picked, f32(0)) })).toMatch(/w = .*, in shared memory/)
    const at = call('toInt', picked)
    expect(scheduleOf(value, { ...store, indices: [index('r'), at] })).toMatch(/w = .*, in shared memory/)
  })

  it('is computed at its use if every element has a row of its own', () => {
    const value = call('mul', load('x', index('r'), index('c')), call('toFloat', index('j')))
    expect(scheduleOf(value, { ...store, value: picked })).not.toContain('in shared memory')
  })
})
