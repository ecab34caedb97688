/** Running bodies as they stand: results, defaults, and input that does not fit. */
import { histogram, int, op, row, scan, sum, tensor } from 'heddle'
import { describe, expect, it } from 'vitest'
import { runOp } from '../../src/lang/run.js'

const t = op('t', {
  dims: ['m', 'n', 'k'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'm n'), total: tensor('f32', 'm') },
  attrs: { eps: 0.5, shift: int(1) },
  body:
    ({ x }, { n, k, eps, shift }) =>
    (m) => ({ y: row(n, (c) => x(m, (c + shift) % n) * k + eps), total: sum(n, (c) => x(m, c)) }),
})

const x = { data: [1, 2, 3, 4], shape: [2, 2] }
const dims = { k: 10 }

describe('runOp', () => {
  it('runs the body over every row', () => {
    const { y, total } = runOp(t, { x }, { dims })
    expect(y).toEqual({ shape: [2, 2], data: Float64Array.of(20.5, 10.5, 40.5, 30.5) })
    expect(total).toEqual({ shape: [2], data: Float64Array.of(3, 7) })
  })
  it('takes attributes', () =>
    expect(runOp(t, { x }, { dims, attrs: { eps: 0, shift: 0 } }).y?.data).toEqual(Float64Array.of(10, 20, 30, 40)))

  const refusals: readonly (readonly [what: string, run: () => unknown, code: string, message: string])[] = [
    ['a missing input', () => runOp(t, {}, { dims }), 'run.input', 't: input x is missing'],
    ['an unknown input', () => runOp(t, { x, z: x }, { dims }), 'run.input', 't: z is neither an input nor an attribute'],
    [
      'an unknown attribute',
      () => runOp(t, { x }, { dims, attrs: { delta: 1 } }),
      'run.input',
      't: delta is neither an input nor an attribute',
    ],
    [
      'another rank',
      () => runOp(t, { x: { data: [1], shape: [1] } }, { dims }),
      'run.shape',
      't: x is "m n", the tensor given has shape [1]',
    ],
    [
      'data of another size',
      () => runOp(t, { x: { data: [1], shape: [1, 2] } }, { dims }),
      'run.shape',
      't: x has 1 elements, its shape [1, 2] has 2',
    ],
    [
      'contradicting extents',
      () => runOp(t, { x }, { dims: { ...dims, n: 3 } }),
      'run.shape',
      't: dimension n of x is 2, but 3 elsewhere',
    ],
    ['a dimension without an extent', () => runOp(t, { x }), 'run.dim', 't: dimension k has no extent'],
    [
      'a read outside',
      () => runOp(t, { x }, { dims, attrs: { shift: -1 } }),
      'evaluate.bounds',
      'x[0, -1] is outside its shape (2, 2)',
    ],
  ]
  it.each(refusals)('refuses %s', (_, run, code, message) => expect(run).toThrow(expect.objectContaining({ code, message })))
})

describe('scan', () => {
  const values = [3, -1, 4, 1, -5]
  const ends = scan(5, (c) => values[c] ?? Number.NaN)
  it('sums the elements up to each, itself included', () => expect([0, 1, 2, 3, 4].map((c) => ends(c))).toEqual([3, 2, 6, 7, 2]))
  it('reads each element once', () => {
    const read: number[] = []
    scan(3, (c) => read.push(c))(2)
    expect(read).toEqual([0, 1, 2])
  })
  it('takes a row, such as another scan', () => expect(scan(5, ends)(4)).toBe(20))
  it('may be empty', () => expect(() => scan(0, () => 1)(0)).toThrow('index 0 is outside the row of 0 elements'))
  it('has no element outside', () => expect(() => ends(5)).toThrow('index 5 is outside the row of 5 elements'))
})

describe('histogram', () => {
  const values = [0, 2, 2, -1, 3, 2, 1.5]
  const counts = histogram(3, 7, (c) => values[c] ?? Number.NaN)
  it('counts integers in [0, bins), others nowhere', () => expect([0, 1, 2].map((b) => counts(b))).toEqual([1, 0, 3]))
  it('has an element for each bin only', () => expect(() => counts(3)).toThrow('index 3 is outside the row of 3 elements'))
  it('of an empty row is zero', () => expect(histogram(1, 0, () => 0)(0)).toBe(0))
})
