/** Columns whose reduction every element needs are read once more and stored: nothing is reduced per element. */
import { describe, expect, it } from 'vitest'
import { call, dim, f32, index, local } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import { eachPass } from '../../src/loop/kernel_loops.js'
import { describeSchedule } from '../../src/schedule/describe.js'
import { columnsOf } from '../../src/schedule/divided/column_reductions.js'
import { programNames } from '../../src/schedule/divided/divided_program.js'
import { mapKernel } from '../../src/schedule/map.js'
import type { MappedKernel } from '../../src/schedule/mapped.js'
import { notesOf } from '../../src/schedule/notes/notes.js'
import { verifyMapped } from '../../src/schedule/verify/mapped.js'
import { axis, kernel, load, tensor } from './fixtures.js'

const [b, c, s, k] = [index('b'), index('c'), index('s'), index('k')]
const total: Stmt = {
  kind: 'reduce',
  name: 'total',
  type: 'f32',
  monoid: 'sum',
  length: dim('n'),
  index: 'k',
  value: load('x', b, k, s),
}
const store = (value: Expr, tensor = 'y'): Stmt => ({ kind: 'store', tensor, indices: [b, c, s], value })
const share = call('div', load('x', b, c, s), local('total'))

/** Each element of images over the sum of its channels. */
const shares = (body: readonly Stmt[] = [total, store(share)], more: Kernel['tensors'] = []): Kernel =>
  kernel(
    'shares',
    'm n p',
    [axis('b', 'm'), axis('c', 'n'), axis('s', 'p')],
    [tensor('x', 'in', 'm n p'), tensor('w', 'in', 'n'), ...more, tensor('y', 'out', 'm n p')],
    body,
  )

const instance = (subject: Kernel, T: 'f32' | 'f16' = 'f32', dims = {}) => ({ kernel: subject, types: { T }, dims })
const kindsOf = (subject: Kernel) => columnsOf(instance(subject))?.program.sequence.map(({ kind }) => kind)

describe('columns that are stored row by row', () => {
  it('are reduced once, and walked once more', () => {
    const made = columnsOf(instance(shares(), 'f16'))
    expect(made).toMatchObject({ vec: 8, axes: [{ index: 'b' }], program: { parts: 8, column: { index: 's' } } })
    expect(made?.program.sequence).toMatchObject([
      { kind: 'pass', reductions: [{ stmt: { name: 'total' } }] },
      { kind: 'stores', loops: [{ index: 'c' }], loads: [{ isWhole: true }], stores: [{ inChunks: true, isWhole: true }] },
    ])
    expect(programNames(made?.program ?? { sequence: [] })).toEqual(['k', 'x_s', 'total', 'c', 'x_s_2'])
    const text = describeSchedule(mapKernel(instance(shares())))
    expect(text).toContain('walk over c < n:')
    expect(text).toContain('y[b, c, s] = x_s_2[s] / total, in chunks')
    expect(text).toContain("up to 32 rows are a thread's")
  })

  it('compute values that depend on the row where it is stored', () => {
    const scaled: Stmt = { kind: 'let', name: 'scaled', type: 'f32', value: call('mul', load('x', b, c, s), load('w', c)) }
    const mean: Stmt = { kind: 'let', name: 'mean', type: 'f32', value: call('div', local('total'), f32(3)) }
    expect(kindsOf(shares([scaled, total, mean, store(call('sub', local('scaled'), local('mean')))]))).toEqual([
      'pass',
      'let',
      'stores',
    ])
  })

  it('may be read as a row first, at places of several loops', () => {
    const kept: Stmt = { kind: 'row', name: 'v', type: 'f32', length: dim('n'), index: 'q', value: load('x', b, index('q'), s) }
    const at = (where: Expr): Expr => ({ kind: 'element', type: 'f32', row: 'v', index: where })
    const sum: Stmt = { ...total, value: at(k) } as Stmt
    expect(kindsOf(shares([kept, sum, store(call('div', at(c), local('total')))]))).toEqual(['pass', 'stores'])
  })

  it('are written element by element if columns are not adjacent', () => {
    const turned = shares(
      [total, { kind: 'store', tensor: 't', indices: [b, s, c], value: share }],
      [tensor('t', 'out', 'm p n')],
    )
    const { sequence = [] } =
      columnsOf(instance({ ...turned, tensors: turned.tensors.filter(({ name }) => name !== 'y') }))?.program ?? {}
    expect(sequence.at(-1)).toMatchObject({ kind: 'stores', stores: [{ inChunks: false, isWhole: false }] })
  })

  it('are so however few the rows, and of a known number', () => {
    expect(columnsOf(instance(shares(), 'f32', { n: 3 }))?.program.sequence).toMatchObject([
      {},
      { loops: [{ length: { value: 3 } }] },
    ])
  })

  it.each<[string, readonly Stmt[]]>([
    [
      'a reduction depends on the row',
      [{ ...total, value: call('mul', load('x', b, k, s), load('w', c)) } as Stmt, store(local('total'))],
    ],
    ['a store does not', [total, store(share), { kind: 'store', tensor: 'z', indices: [b, s], value: local('total') }]],
    ['a store has a condition', [total, { ...store(share), when: call('lt', c, k) } as Stmt]],
  ])('are none where %s', (_, body) => {
    expect(kindsOf(shares(body, [tensor('z', 'out', 'm p')])) ?? []).not.toContain('stores')
  })

  it('exclude tensors that are replaced in place while they are reduced', () => {
    const inPlace = shares()
    const tensors = inPlace.tensors.map((each) => (each.name === 'y' ? { ...each, updates: 'x' } : each))
    expect(columnsOf(instance({ ...inPlace, tensors }))).toBeUndefined()
  })

  it('are refused by their verifier if a store reads a value that it does not load', () => {
    const mapped = mapKernel(instance(shares())).split?.inRows?.mapped
    if (mapped?.program.kind !== 'columns') throw new Error('no column program')
    const { program } = mapped
    const without = (changes: object): MappedKernel => ({
      ...mapped,
      program: {
        ...program,
        sequence: program.sequence.map((step) => (step.kind === 'stores' ? { ...step, ...changes } : step)),
      },
    })
    verifyMapped(mapped, 'mapping')
    expect(() => eachPass(without({ loads: [] }), () => undefined)).toThrow('an element of x_s_2 is read before it is computed')
    expect(() => verifyMapped(without({ stores: [] }), 'mapping')).toThrow('a walk that stores rows stores nothing')
  })
})

describe('reductions that rows repeat', () => {
  const messages = (subject: Kernel) => notesOf(mapKernel(instance(subject))).map(({ message }) => message)

  it('have a note with their cost, unless a launch in front or a column program computes them once', () => {
    const nested: Expr = {
      kind: 'fold',
      type: 'f32',
      monoid: 'sum',
      length: dim('p'),
      index: 'q',
      value: load('x', b, k, index('q')),
    }
    const ofAll = { ...total, value: nested } as Stmt
    const row: Stmt = { kind: 'storeRow', tensor: 'y', rows: [b, c], length: dim('p'), index: 's', value: share }
    const group = { ...shares([ofAll, row]), rows: [axis('b', 'm'), axis('c', 'n')] }
    expect(messages(group).join()).not.toContain('recomputed')
    const beside = { ...group, rows: [axis('b', 'm'), { ...axis('c', 'n'), also: ['p'] }] }
    expect(messages(beside).join()).toContain(
      'total, a sum of n elements, is the same for every c and is recomputed for each: n times',
    )
    expect(messages(shares()).join()).not.toContain('recomputed')
  })
})
