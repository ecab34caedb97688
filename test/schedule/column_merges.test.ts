/** Reductions by an author's monoid across rows become column programs like those by the language's own, with a partial result for each field. */
import { describe, expect, it } from 'vitest'
import { call, dim, f32, i32, index, local } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel, Stmt, StmtOf } from '../../src/ir/kernel.js'
import { eachPass } from '../../src/loop/kernel_loops.js'
import { describeSchedule } from '../../src/schedule/describe.js'
import { columnsOf } from '../../src/schedule/divided/column_reductions.js'
import { programNames } from '../../src/schedule/divided/divided_program.js'
import { mapKernel } from '../../src/schedule/map.js'
import type { MappedKernel } from '../../src/schedule/mapped.js'
import { notesOf } from '../../src/schedule/notes/notes.js'
import { verifyMapped } from '../../src/schedule/verify/mapped.js'
import { axis, kernel, load, loadInt, tensor } from './fixtures.js'

const [r, c, i] = [index('r'), index('c'), index('i')]
const x = load('x', r, c)

/** A sum of every value, each a field of one monoid of an author, by names that begin with `name`. */
function merge(name: string, values: readonly Expr[], identity = 0): StmtOf<'merge'> {
  const fields = values.map(({ type }, at) => ({
    name: `f${at}`,
    type: type === 'i32' ? ('i32' as const) : ('f32' as const),
    identity,
  }))
  const [left, right] = ['a', 'b'].map((side) => fields.map((field) => `${name}_${side}_${field.name}`))
  const combine = fields.map(({ type }, at) => call('add', local(left?.[at] ?? '', type), local(right?.[at] ?? '', type)))
  const monoid = { fields, left: left ?? [], right: right ?? [], combine }
  return { kind: 'merge', names: fields.map((field) => `${name}_${field.name}`), monoid, length: dim('m'), index: 'r', values }
}

/** A result for each column. */
const reduced = (...body: readonly Stmt[]): Kernel =>
  kernel(
    'reduced',
    'm n',
    [axis('c', 'n')],
    [tensor('x', 'in', 'm n'), tensor('t', 'in', 'n m'), tensor('id', 'in', 'm', 'i32'), tensor('y', 'out', 'n')],
    [...body, { kind: 'store', tensor: 'y', indices: [c], value: local('own_f0') }],
  )

/** Elements that read what their column is reduced to. */
const stored = (of: StmtOf<'merge'>): Kernel =>
  kernel(
    'stored',
    'm n',
    [axis('i', 'm'), axis('c', 'n')],
    [tensor('x', 'in', 'm n'), tensor('y', 'out', 'm n')],
    [of, { kind: 'store', tensor: 'y', indices: [i, c], value: call('sub', load('x', i, c), local('own_f1')) }],
  )

const three = [f32(1), x, call('square', x)]
const instance = (subject: Kernel, T: 'f32' | 'f16' = 'f16') => ({ kernel: subject, types: { T }, dims: {} })
const shape = (subject: Kernel, T: 'f32' | 'f16' = 'f16') => {
  const made = columnsOf(instance(subject, T))
  return made && [made.vec, made.program.parts]
}

describe('reductions of columns by a monoid of an author', () => {
  it('have as many parts as registers hold of all their fields', () => {
    expect(shape(reduced(merge('own', [x])))).toEqual([8, 8])
    expect(shape(reduced(merge('own', [f32(1), x])))).toEqual([8, 4])
    expect(shape(reduced(merge('own', three)))).toEqual([8, 2])
    expect(shape(reduced(merge('own', three)), 'f32')).toEqual([4, 4])
  })

  it('load several chunks of each part where parts are few', () => {
    const eachOf = (subject: Kernel) => columnsOf(instance(subject))?.program.each
    expect(eachOf(reduced(merge('own', [f32(1), x])))).toBe(1)
    expect(eachOf(reduced(merge('own', three)))).toBe(2)
    expect(eachOf(reduced(merge('own', [x, ...three, ...three])))).toBe(4)
    // Two inputs are two chunks of every row.
    const both = merge('own', [f32(1), x, load('z', r, c)])
    expect(eachOf({ ...reduced(both), tensors: [tensor('z', 'in', 'm n'), ...reduced(both).tensors] })).toBe(1)
    expect(describeSchedule(mapKernel(instance(reduced(merge('own', three)))))).toContain('each loads 4 rows at once')
  })

  it('share a walk with other reductions, and name all their results', () => {
    const total: Stmt = {
      kind: 'reduce',
      name: 'total',
      type: 'f32',
      monoid: 'sum',
      length: dim('m'),
      index: 'q',
      value: load('x', index('q'), c),
    }
    const subject = reduced(merge('own', three), total)
    const { sequence = [] } = columnsOf(instance(subject))?.program ?? {}
    expect(sequence.map(({ kind }) => kind)).toEqual(['pass', 'store'])
    expect(programNames({ sequence })).toEqual(['r', 'x_c', 'own_f0', 'own_f1', 'own_f2', 'total'])
    const text = describeSchedule(mapKernel(instance(subject)))
    expect(text).toContain('(own_f0, own_f1, own_f2) merge (1.0, x_c[c], square(x_c[c]))')
    expect(text).toContain('total = sum of x_c[c]')
  })

  it('are followed by walks that read their fields', () => {
    const deviation = merge('later', [call('sub', x, local('own_f1'))])
    const { sequence = [] } = columnsOf(instance(reduced(merge('own', three), deviation)))?.program ?? {}
    expect(sequence.map(({ kind }) => kind)).toEqual(['pass', 'store', 'pass'])
    expect(columnsOf(instance(stored(merge('own', three))))?.program.sequence).toMatchObject([
      { kind: 'pass', reductions: [{ stmt: { kind: 'merge' } }] },
      { kind: 'stores', stores: [{ inChunks: true }] },
    ])
  })

  it('have narrower chunks where their results fill shared memory, and none without room', () => {
    const fields = (count: number) => Array.from({ length: count }, () => x)
    expect(shape(reduced(merge('own', fields(8))))).toEqual([8, 1])
    expect(shape(reduced(merge('own', fields(9))))).toEqual([4, 1])
    expect(shape(reduced(merge('own', fields(16))))).toEqual([4, 1])
    expect(shape(reduced(merge('own', fields(17))))).toBeUndefined()
    // Each monoid has memory of its own, two uses of one share it.
    const again = merge('again', fields(9), 1)
    expect(shape(reduced(merge('own', fields(9)), again))).toBeUndefined()
    const own = merge('own', fields(9))
    const uses = (count: number) =>
      Array.from({ length: count }, (_, at) => ({ ...merge(`use${at}`, fields(9)), monoid: own.monoid }))
    expect(shape(reduced(own, ...uses(1)))).toEqual([4, 1])
    // Partial results of one walk fit into registers.
    expect(shape(reduced(own, ...uses(4)))).toEqual([4, 1])
    expect(shape(reduced(own, ...uses(5)))).toBeUndefined()
  })

  it('load only rows with a condition that all fields have, or that their identity replaces', () => {
    const counts = call('eq', loadInt('id', r), i32(3))
    const whenOf = (...values: readonly Expr[]) => {
      const [pass] = columnsOf(instance(reduced(merge('own', values))))?.program.sequence ?? []
      return pass?.kind === 'pass' ? pass.when : undefined
    }
    const under = (value: Expr, other: Expr): Expr => call('select', counts, value, other)
    expect(whenOf(under(i32(1), i32(0)), under(x, f32(0)), f32(0))).toEqual(counts)
    expect(whenOf(i32(1), under(x, f32(0)))).toBeUndefined()
    expect(whenOf(under(x, f32(1)))).toBeUndefined()
    const other = call('select', call('eq', loadInt('id', r), i32(4)), x, f32(0))
    expect(whenOf(under(x, f32(0)), other)).toBeUndefined()
    expect(whenOf(under(x, f32(0)), call('select', call('lt', x, f32(0)), x, f32(0)))).toBeUndefined()
  })

  it('have no note on strided reads, which those without room keep', () => {
    const kinds = (count: number) => {
      const values = Array.from({ length: count }, () => x)
      return notesOf(mapKernel(instance(reduced(merge('own', values))))).map(({ kind }) => kind)
    }
    expect(kinds(3)).toEqual([])
    expect(kinds(17)).toContain('strided')
  })

  it.each<[string, Kernel]>([
    ['columns are rows in memory', reduced(merge('own', [load('t', c, r)]))],
    ['one of their fields is scattered', reduced(merge('own', [x, load('t', c, r)]))],
    ['rows are few', reduced({ ...merge('own', three), length: i32(4) })],
    ['only the column knows how many rows it has', reduced({ ...merge('own', three), length: loadInt('id', c) })],
  ])('are none where %s', (_, subject) => {
    expect(columnsOf(instance(subject))).toBeUndefined()
  })

  it('are refused by their verifier if a field reads a value that its walk does not load', () => {
    const mapped = mapKernel(instance(reduced(merge('own', three))))
    const { program } = mapped
    if (program.kind !== 'columns') throw new Error('no column program')
    verifyMapped(mapped, 'mapping')
    const sequence = program.sequence.map((step) => (step.kind === 'pass' ? { ...step, loads: [] } : step))
    const without: MappedKernel = { ...mapped, program: { ...program, sequence } }
    expect(() => eachPass(without, () => undefined)).toThrow('an element of x_c is read before it is computed')
  })
})
