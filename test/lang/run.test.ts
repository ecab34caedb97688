/** Running bodies unchanged: results, defaults, and input that does not fit. */
import { argmax, argmin, histogram, int, max, maximum, min, op, row, scan, sum, tensor, toInt } from 'heddle'
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

  it('reads and stores conditions', () => {
    const kept = op('kept', {
      dims: ['n'],
      inputs: { on: tensor('bool', 'n'), x: tensor('f32', 'n') },
      outputs: { y: tensor('f32', 'n'), off: tensor('bool', 'n') },
      body:
        ({ on, x }, { n }) =>
        () => {
          const off = row(n, (c) => !on(c))
          return { y: row(n, (c) => (on(c) ? x(c) : 0)), off: row(n, (c) => off(c) || x(c) > 2) }
        },
    })
    const { y, off } = runOp(kept, { on: { data: [1, 0, 1], shape: [3] }, x: { data: [1, 2, 3], shape: [3] } })
    expect([y?.data, off?.data]).toEqual([Float64Array.of(1, 0, 3), Float64Array.of(0, 1, 1)])
  })

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

const stores = op('stores', {
  dims: ['n'],
  inputs: { x: tensor('f32', 'n') },
  outputs: { signed: tensor('i8', 'n'), unsigned: tensor('u8', 'n'), whole: tensor('i32', 'n'), half: tensor('f16', 'n') },
  body:
    ({ x }) =>
    (i) => ({ signed: x(i), unsigned: toInt(x(i)), whole: toInt(x(i)), half: maximum(x(i), 0) }),
})

describe('stores of a body', () => {
  it('round and saturate as those of a device', () => {
    const data = [0.5, 1.5, -2.5, 126.6, 200, -128, 300.9, -1e10, Number.NaN]
    const { signed, unsigned, whole, half } = runOp(stores, { x: { data, shape: [9] } })
    expect(signed?.data).toEqual(Float64Array.of(0, 2, -2, 127, 127, -127, 127, -127, -127))
    expect(unsigned?.data).toEqual(Float64Array.of(0, 1, 0, 126, 200, 0, 255, 0, 0))
    expect(whole?.data).toEqual(Float64Array.of(0, 1, -2, 126, 200, -128, 300, -(2 ** 31), 0))
    // Floats are the results of the body, including NaN: the tolerance covers the loss of storing them.
    expect(half?.data).toEqual(Float64Array.of(0.5, 1.5, 0, 126.6, 200, 0, 300.9, 0, Number.NaN))
  })
})

const extremes = op('extremes', {
  dims: ['n'],
  inputs: { x: tensor('f32', 'n') },
  outputs: { largest: tensor('f32', ''), smallest: tensor('f32', ''), most: tensor('i32', ''), least: tensor('i32', '') },
  body:
    ({ x }, { n }) =>
    () => ({ largest: max(n, x), smallest: min(n, x), most: argmax(n, x), least: argmin(n, x) }),
})

describe('extremes of a body', () => {
  const of = (...data: number[]) => {
    const { largest, smallest, most, least } = runOp(extremes, { x: { data, shape: [data.length] } })
    return [largest, smallest, most, least].map((output) => output?.data[0])
  }
  it('may all be below or above zero', () => {
    expect(of(-3, -1, -2)).toEqual([-1, -3, 1, 0])
    expect(of(3, 1, 2)).toEqual([3, 1, 0, 1])
  })
  it('are NaN if an element is, whose index is never picked', () => {
    expect(of(Number.NaN, 1, 2)).toEqual([Number.NaN, Number.NaN, 2, 1])
    expect(of(3, Number.NaN, 3)).toEqual([Number.NaN, Number.NaN, 0, 0])
    expect(of(Number.NaN, Number.NEGATIVE_INFINITY)).toEqual([Number.NaN, Number.NaN, 1, 1])
    expect(of(Number.NaN, Number.NaN)).toEqual([Number.NaN, Number.NaN, 0, 0])
  })
})

describe('functions of rows that lack an argument', () => {
  // Types erased, as in untyped JavaScript.
  const untyped: Readonly<Record<string, (...args: unknown[]) => unknown>> = { sum, max, min, argmax, argmin, row, scan } as never
  it.each(Object.keys(untyped))('%s returns the index', (name) => {
    const call = untyped[name] ?? expect.fail('no function')
    const refused = (message: string) => expect.objectContaining({ code: 'run.argument', message })
    expect(() => call(3, undefined)).toThrow(refused(`${name}(3, ...): the function of its elements is undefined`))
    expect(() => call(undefined, () => 1)).toThrow(refused(`${name}(...): its length is undefined`))
    expect(() => call(3, () => 1)).not.toThrow()
  })
})
