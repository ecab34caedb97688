/** Reductions of whole tensors become programs of totals if several blocks can divide one pass, and only then. */
import { describe, expect, it } from 'vitest'
import { call, dim, f32, i32, index, local } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import { eachPass } from '../../src/loop/kernel_loops.js'
import { describeSchedule } from '../../src/schedule/describe.js'
import { programNames, walkOf } from '../../src/schedule/divided/divided_program.js'
import { totalsOf } from '../../src/schedule/divided/full_reductions.js'
import { mapKernel } from '../../src/schedule/map.js'
import type { MappedKernel } from '../../src/schedule/mapped.js'
import { problemOf } from '../../src/schedule/tuning/choice.js'
import { verifyMapped } from '../../src/schedule/verify/mapped.js'
import { axis, kernel, load, tensor } from './fixtures.js'

const [r, c] = [index('r'), index('c')]
const fold = (value: Expr, length: Expr = dim('n'), name = 'c', monoid: 'sum' | 'max' = 'sum'): Expr => ({
  kind: 'fold',
  type: 'f32',
  monoid,
  length,
  index: name,
  value,
})
const reduce = (value: Expr, length: Expr = dim('m'), name = 'r', given = 'total'): Stmt => ({
  kind: 'reduce',
  name: given,
  type: 'f32',
  monoid: 'sum',
  length,
  index: name,
  value,
})

/** One number: a reduction and a value computed from it. */
const reduced = (...body: readonly Stmt[]): Kernel =>
  kernel(
    'reduced',
    'm n',
    [],
    [tensor('x', 'in', 'm n'), tensor('t', 'in', 'n m'), tensor('w', 'in', 'm'), tensor('y', 'out', '')],
    [...body, { kind: 'store', tensor: 'y', indices: [], value: call('sqrt', local('total')) }],
  )
const all = reduced(reduce(fold(load('x', r, c))))

const instance = (subject: Kernel, T: 'f32' | 'f16' = 'f32') => ({ kernel: subject, types: { T }, dims: {} })
const passOf = (subject: Kernel, T?: 'f16') => {
  const made = totalsOf(instance(subject, T))
  return made && walkOf(made.program)
}
const indices = (subject: Kernel) => passOf(subject)?.loops.map((loop) => loop.index)

describe('programs of totals', () => {
  it('run nested loops in chunks of adjacent elements', () => {
    const f16 = totalsOf(instance(all, 'f16'))
    expect(f16).toMatchObject({ vec: 8, axes: [], program: { sequence: [{ loads: [{ name: 'x_c', isWhole: true }] }, {}] } })
    expect(indices(all)).toEqual(['r', 'c'])
    // Of a transposed tensor, the other loop runs along neighbours.
    expect(indices(reduced(reduce(fold(load('t', c, r)))))).toEqual(['c', 'r'])
    expect(describeSchedule(mapKernel(instance(all)))).toContain('total = sum of x_c[c]')
  })

  it('find which chunks are whole rows: those of a row-major tensor, read to the end of its rows', () => {
    const isWhole = (subject: Kernel) => passOf(subject)?.loads.map((each) => each.isWhole)
    expect(isWhole(reduced(reduce(fold(load('x', r, c)))))).toEqual([true])
    // Another dimension than the tensor's, and rows that are apart in memory.
    expect(isWhole(reduced(reduce(fold(load('x', r, c), dim('m'), 'c'), dim('n'))))).toEqual([false])
    const apart = {
      name: 'apart',
      axes: ['r', 'c'],
      offset: call('add', call('mul', index('r'), i32(4096)), index('c')),
      size: i32(2 ** 24),
    }
    const laidOut = all.tensors.map((each) => (each.name === 'x' ? { ...each, layout: apart } : each))
    expect(isWhole({ ...all, tensors: laidOut })).toEqual([false])
  })

  it('read values found by a separate sum element by element', () => {
    const place: Expr = { kind: 'fold', type: 'i32', monoid: 'sum', length: i32(3), index: 'k', value: index('k') }
    const made = passOf(reduced(reduce(fold(call('mul', load('x', r, c), load('x', place, c))))))
    expect(made?.loads.map((each) => each.load.indices)).toEqual([[r, c]])
  })

  it('define their names once each', () => {
    const made = totalsOf(
      instance(
        reduced(
          { kind: 'let', name: 'scale', type: 'f32', value: load('w', i32(0)) },
          reduce(call('mul', load('w', r), local('scale'))),
        ),
      ),
    )
    if (made === undefined) throw new Error('no program of totals')
    expect(programNames(made.program)).toEqual(['scale', 'r', 'w_r', 'total'])
  })

  it('use one loop for one result, with values known before it', () => {
    const scaled = reduced(
      { kind: 'let', name: 'scale', type: 'f32', value: load('w', i32(0)) },
      reduce(call('mul', load('w', r), local('scale'))),
    )
    expect(totalsOf(instance(scaled))?.program).toMatchObject({
      sequence: [{ name: 'scale' }, { kind: 'pass' }, { kind: 'store' }],
    })
  })

  it('share a walk among reductions of the same loops', () => {
    const two = reduced(
      reduce(fold(load('x', r, c))),
      reduce(fold(call('square', load('x', index('q'), index('d'))), dim('n'), 'd'), dim('m'), 'q', 'squares'),
    )
    expect(passOf(two)?.loads).toHaveLength(1)
    expect(passOf(two)?.reductions).toHaveLength(2)
  })

  it('have no choice of a schedule', () => {
    const mapped = mapKernel(instance(all))
    expect(problemOf({ kind: 'elementwise', vec: 4, threads: 128 }, mapped, 768)).toContain('the kernel has programs of totals')
  })

  it.each<[string, Kernel]>([
    [
      'a reduction needs another',
      reduced(reduce(load('w', r)), reduce(call('mul', load('w', index('q')), local('total')), dim('m'), 'q', 'again')),
    ],
    ['two walks differ', reduced(reduce(load('w', r)), reduce(load('x', i32(0), c), dim('n'), 'c', 'other'))],
    ['elements are few', reduced(reduce(fold(load('x', r, c), i32(8)), i32(16)))],
    ['only the data say how many there are', reduced(reduce(load('w', r), call('toInt', load('w', i32(0)))))],
    [
      'each row has a result of its own',
      {
        ...all,
        rows: [axis('i', 'm')],
        body: all.body.map((s) => (s.kind === 'reduce' ? reduce(load('x', index('i'), c), dim('n'), 'c') : s)),
      },
    ],
  ])('are none where %s', (_, subject) => {
    expect(totalsOf(instance(subject))).toBeUndefined()
  })

  it('fold differently combined values element by element', () => {
    const mixed = passOf(reduced(reduce(fold(load('x', r, c), dim('n'), 'c', 'max'))))
    expect(mixed?.loops.map((loop) => loop.index)).toEqual(['r'])
    expect(mixed?.reductions[0]?.values[0]?.kind).toBe('fold')
  })

  it('are refused by their verifier if a pass reads a value that it does not load, or has nothing to reduce', () => {
    const mapped = mapKernel(instance(all))
    const { program } = mapped
    if (program.kind !== 'totals') throw new Error('no program of totals')
    const pass = walkOf(program)
    const changed = (changes: object): MappedKernel => ({
      ...mapped,
      program: { ...program, sequence: program.sequence.map((step) => (step === pass ? { ...pass, ...changes } : step)) },
    })
    verifyMapped(mapped, 'mapping')
    expect(() => eachPass(changed({ loads: [] }), () => undefined)).toThrow('an element of x_c is read before it is computed')
    const [total] = pass.reductions
    expect(() => verifyMapped(changed({ reductions: [] }), 'mapping')).toThrow('a walk reduces nothing')
    const unknown = [{ index: 'r', length: local('total', 'i32') }]
    expect(() => verifyMapped(changed({ loops: unknown }), 'mapping')).toThrow('only a row knows how far r runs')
    const late = [{ ...total, values: [call('add', local('total'), f32(1))] }]
    expect(() => eachPass(changed({ reductions: late }), () => undefined)).toThrow('total is read before it is computed')
  })
})
