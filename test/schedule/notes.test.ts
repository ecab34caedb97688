/** Performance notes: each appears where it applies, and not elsewhere. */

import { describe, expect, it } from 'vitest'
import { call, dim, f32, i32, index, local, toFloat } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import { noFacts } from '../../src/ir/facts/facts.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import { strideAlong } from '../../src/schedule/access/stride.js'
import { mapKernel } from '../../src/schedule/map.js'
import { notesOf } from '../../src/schedule/notes/notes.js'
import { axis, element, everything, kernel, load, loadInt, tensor } from './fixtures.js'

const [a, b, c] = [index('a'), index('b'), index('c')]
const notes = (subject: Kernel) =>
  notesOf(mapKernel({ kernel: subject, types: Object.hasOwn(subject.types, 'T') ? { T: 'f16' } : {}, dims: {} }))
const kinds = (subject: Kernel): string[] => notes(subject).map(({ kind }) => kind)

/** For each row, the sum of `value` over its elements. */
const summed = (value: Expr, ...more: readonly Stmt[]): Kernel =>
  kernel(
    'summed',
    'm n k',
    [axis('a', 'm')],
    [tensor('x', 'in', 'm n'), tensor('t', 'in', 'n m'), tensor('p', 'in', 'm n', 'i32'), tensor('y', 'out', 'm')],
    [
      ...more,
      { kind: 'reduce', name: 'total', type: 'f32', monoid: 'sum', length: dim('n'), index: 'c', value },
      { kind: 'store', tensor: 'y', indices: [a], value: local('total') },
    ],
  )

describe('a note on strided reads', () => {
  it('appears if the lanes of a row read columns, with the cost', () => {
    const [note, ...others] = notes(summed(call('mul', load('x', a, c), load('t', c, a))))
    expect(others).toEqual([])
    expect(note?.message).toContain('t[c, a] is read with a stride: consecutive c are far apart')
    expect(note?.message).toContain('32 bytes for each 2 that are used, up to 16 times the traffic')
  })
  it.each<[string, Expr]>([
    ['along the row', load('x', a, c)],
    ['backwards along the row', load('x', a, call('sub', call('sub', dim('n'), i32(1)), c))],
    ['where data say', load('t', loadInt('p', a, c), a)],
    ['in blocks', load('x', a, call('add', call('mul', call('idiv', c, i32(64)), dim('k')), call('mod', c, i32(64))))],
  ])('is not made of reads %s', (_, value) => {
    expect(kinds(summed(value))).toEqual([])
  })
  const inside = (by: string, ...indices: readonly Expr[]): Expr => ({
    kind: 'fold',
    type: 'f32',
    monoid: 'sum',
    length: dim('n'),
    index: by,
    value: load('x', ...indices),
  })
  /** Minus a minimum: not a total that blocks divide, so lanes run the outer loop and each sums separately. */
  const along = (value: Expr, least: Expr = toFloat(loadInt('p', a, b))): Kernel => {
    const first: Stmt = { kind: 'reduce', name: 'least', type: 'f32', monoid: 'min', length: dim('n'), index: 'b', value: least }
    const subject = summed(call('sub', value, local('least')), first)
    return { ...subject, tensors: subject.tensors.map((each) => (each.name === 'x' ? tensor('x', 'in', 'n m n') : each)) }
  }
  it('appears for separate sums per lane with an equally large stride, and not for neighbours', () => {
    expect(kinds(along(inside('j', c, a, index('j'))))).toEqual([])
    expect(kinds(along(inside('j', index('j'), a, c)))).toEqual([])
    const [note, ...others] = notes(along(inside('j', c, index('j'), a)))
    expect(others).toEqual([])
    expect(note?.message).toMatch(/^x\[\w+, j, a\] is read with a stride: consecutive \w+ are far apart/)
  })
  it('appears once for loops that are written twice', () => {
    const again = inside('l', b, index('l'), a)
    expect(notes(along(inside('j', c, index('j'), a), again)).map(({ message }) => message.split(' is ')[0])).toEqual([
      'x[b, l, a]',
    ])
  })
  it('accounts for shared reads of neighbours', () => {
    const times = (by: number): Expr => call('mul', c, i32(by))
    expect([2, 8, 9].map((by) => strideAlong(times(by), 'c', 8))).toEqual(['near', 'near', 'far'])
    expect(strideAlong(call('mul', c, dim('n')), 'c', 8)).toBe('far')
    expect(strideAlong(call('mul', b, dim('n')), 'c', 8)).toBe('still')
    expect(strideAlong(call('mul', c, c), 'c', 8)).toBe('unknown')
    // A remainder has the stride of its dividend, scaled by its factor.
    const remainder = call('mod', c, dim('n'))
    expect(['c', 'b'].map((along) => strideAlong(remainder, along, 8))).toEqual(['near', 'still'])
    expect([8, 9].map((by) => strideAlong(call('mul', call('bitAnd', c, i32(3)), i32(by)), 'c', 8))).toEqual(['near', 'far'])
    expect(strideAlong(call('mod', call('mul', c, dim('n')), i32(3)), 'c', 8)).toBe('unknown')
  })
})

describe('a note on rows that are computed again', () => {
  const row = (value: Expr): Stmt => ({ kind: 'row', name: 'v', type: 'f32', length: dim('n'), index: 'j', value })
  const elsewhere = element('v', call('sub', call('sub', dim('n'), i32(1)), c))
  it('appears if they are read at another index, at a cost', () => {
    const [note] = notes(summed(elsewhere, row(call('exp', load('x', a, index('j'))))))
    expect(note).toMatchObject({ kind: 'recomputed' })
    expect(note?.message).toContain('v is read at another index than that of a loop over it')
    expect(note?.message).toContain('exp of x[a, j] for every such element')
    const scan: Stmt = {
      kind: 'scan',
      name: 'v',
      type: 'f32',
      monoid: 'sum',
      length: dim('n'),
      index: 'j',
      value: load('x', a, index('j')),
    }
    expect(notes(summed(elsewhere, scan))[0]?.message).toContain('a sum of up to n elements')
  })
  it('does not appear if they are read in their loop, or are a load', () => {
    expect(kinds(summed(element('v', c), row(call('exp', load('x', a, index('j'))))))).toEqual([])
    expect(kinds(summed(elsewhere, row(call('add', load('x', a, index('j')), f32(1)))))).toEqual([])
  })
})

describe('a note on a block for each row', () => {
  const upTo = (length: Expr): Kernel => {
    const subject = summed(load('x', a, c))
    return { ...subject, body: subject.body.map((s) => (s.kind === 'reduce' ? { ...s, length } : s)) }
  }
  const own = loadInt('p', a, i32(0))
  it('appears if only the row knows its length', () => {
    const [note] = notes(upTo(own))
    expect(note).toMatchObject({ kind: 'block a row' })
    expect(note?.message).toContain('only the row knows how long p[a, 0] is, so a block of 512 threads computes each row')
    expect(note?.message).toContain('write minimum(128, p[a, 0])')
  })
  it('does not appear with a bound, or for one of two lengths', () => {
    expect(kinds(upTo(dim('n')))).toEqual([])
    expect(kinds(upTo(call('minimum', i32(128), own)))).toEqual([])
    expect(kinds(upTo(call('select', call('gt', own, i32(0)), dim('n'), dim('k'))))).toEqual([])
  })
})

describe('a note on one block', () => {
  const one = (...body: readonly Stmt[]): Kernel =>
    kernel('one', 'n', [], [tensor('x', 'in', 'n'), tensor('y', 'out', 'n')], body)
  const largest: Stmt = {
    kind: 'reduce',
    name: 'top',
    type: 'f32',
    monoid: 'max',
    length: dim('n'),
    index: 'b',
    value: load('x', b),
  }
  const store = (value: Expr): Stmt => ({ kind: 'storeRow', tensor: 'y', rows: [], length: dim('n'), index: 'c', value })
  const running: Stmt = { ...largest, kind: 'scan', name: 'running', monoid: 'sum', index: 'a', value: load('x', index('a')) }
  const below = call('sub', { kind: 'element', type: 'f32', row: 'running', index: c }, local('top'))
  it('appears if one row is scanned and stored', () => {
    const [note] = notes(one(largest, running, store(below)))
    expect(note).toMatchObject({ kind: 'one block' })
    expect(note?.message).toContain('there is one row, of n elements, and one block computes it')
    const half: Stmt = { kind: 'let', name: 'half', type: 'f32', value: call('mul', local('top'), f32(0.5)) }
    expect(kinds(one(largest, half, running, store(call('sub', below, local('half')))))).toEqual(['one block'])
  })
  it('does not appear if one row is reduced and stored, where several launches divide long rows', () => {
    const half: Stmt = { kind: 'let', name: 'half', type: 'f32', value: call('mul', local('top'), f32(0.5)) }
    expect(kinds(one(largest, store(call('sub', load('x', c), local('top')))))).toEqual([])
    expect(kinds(one(largest, half, store(call('sub', load('x', c), local('half')))))).toEqual([])
    expect(
      kinds(one({ kind: 'let', name: 'first', type: 'f32', value: load('x', i32(0)) }, largest, half, store(local('half')))),
    ).toEqual([])
  })
  it('does not appear if elements are computed separately, or totals are divided', () => {
    expect(kinds(one(store(load('x', c))))).toEqual([])
    const total = kernel(
      'total',
      'n',
      [],
      [tensor('x', 'in', 'n'), tensor('y', 'out', '')],
      [largest, { kind: 'store', tensor: 'y', indices: [], value: local('top') }],
    )
    expect(kinds(total)).toEqual([])
  })
})

it('kernels of layers and transposes have none', () => {
  const of = (name: string) => everything.find((each) => each.name === name) ?? expect.fail(name)
  for (const name of ['softmax', 'layer_norm', 'transpose']) expect(kinds(of(name)), name).toEqual([])
})

describe('a note on strided reads that share sectors', () => {
  /** Each element of `y` computed from reads of adjacent pairs. */
  const pairs = (...places: readonly Expr[]): Kernel =>
    kernel(
      'pairs',
      'm n k',
      [axis('a', 'm')],
      [tensor('x', 'in', 'm n k'), tensor('y', 'out', 'm n')],
      [
        {
          kind: 'storeRow',
          tensor: 'y',
          rows: [a],
          length: dim('n'),
          index: 'c',
          value: places.map((at) => load('x', a, c, at)).reduce((left, right) => call('add', left, right)),
        },
      ],
    )
  const traffic = (subject: Kernel) => notes(subject).map(({ message }) => /up to [\d.]+ times/.exec(message)?.[0])
  it('accounts for other reads of the same sectors', () => {
    expect(traffic(pairs(i32(0)))).toEqual(['up to 16 times'])
    expect(traffic(pairs(i32(0), i32(1)))).toEqual(['up to 8 times'])
    expect(traffic(pairs(i32(0), i32(1), i32(0)))).toEqual(['up to 8 times'])
    // Another sector, and one that other data say.
    expect(traffic(pairs(i32(0), i32(16)))).toEqual(['up to 16 times', 'up to 16 times'])
  })
  it('does not appear if a fact bounds the stride', () => {
    const stated = (equal: number): Kernel => ({
      ...pairs(i32(0)),
      facts: { ...noFacts, dims: { k: { equal } } },
    })
    expect(traffic(stated(2))).toEqual([])
    expect(traffic(stated(64))).toEqual(['up to 16 times'])
  })
  it('does not appear for planes that neighbours alternate between', () => {
    const planes = (value: Expr) => strideAlong(call('add', call('mul', call('mod', c, i32(2)), dim('n')), value), 'c', 8)
    expect(planes(call('idiv', c, i32(2)))).toBe('near')
    expect(planes(call('mul', call('idiv', c, i32(2)), dim('k')))).toBe('far')
  })
})

describe('a note on a matmul', () => {
  const product = (value: Expr, length: Expr = dim('k')): Kernel =>
    kernel(
      'product',
      'm n k',
      [axis('a', 'm'), axis('b', 'n')],
      [
        tensor('x', 'in', 'm k'),
        tensor('w', 'in', 'n k'),
        tensor('each', 'in', 'm n k'),
        tensor('p', 'in', 'm k', 'i32'),
        tensor('y', 'out', 'm n'),
      ],
      [
        { kind: 'reduce', name: 'total', type: 'f32', monoid: 'sum', length, index: 'c', value },
        { kind: 'store', tensor: 'y', indices: [a, b], value: local('total') },
      ],
    )
  const matmuls = (subject: Kernel) => notes(subject).filter(({ kind }) => kind === 'matmul')
  const [left, right] = [load('x', a, c), load('w', b, c)]
  it.each<[string, Expr]>([
    ['two factors', call('mul', left, right)],
    ['scaled factors', call('mul', call('mul', f32(2), left), call('add', right, f32(1)))],
    ['weights that an index chooses', call('mul', call('mul', f32(2), left), load('each', loadInt('p', a, i32(0)), b, c))],
  ])('is made of %s', (_, value) => {
    const [note, ...others] = matmuls(product(value))
    expect(others).toEqual([])
    expect(note?.message).toMatch(
      /multiplies x, constant along n, by (w|each), constant along m; each of m x n elements loads 2 x k/,
    )
  })
  it('appears for squared differences', () =>
    expect(matmuls(product(call('square', call('sub', left, right))))[0]?.message).toContain('less twice the matmul'))
  it.each<[string, Expr, Expr?]>([
    ['one factor that knows both', call('mul', load('each', a, b, c), right)],
    ['what is not multiplied', call('add', left, right)],
    ['a grouped matmul', call('mul', left, load('each', loadInt('p', a, i32(0)), b, c))],
    ['short sums', call('mul', left, right), i32(3)],
    ['windows', call('mul', load('x', a, call('add', c, a)), right)],
    ['a choice', call('select', call('eq', loadInt('p', a, c), b), right, f32(0))],
  ])('is not made of %s', (_, value, length) => expect(matmuls(product(value, length))).toEqual([]))
})
