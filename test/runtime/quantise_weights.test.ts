/** Quantised weights: values and scales by hand, layouts with padding, rounding of ties, refusals. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { layout } from '../../src/lang/layout.js'
import { channelMaxima, quantiseWeights, type WeightMatrix } from '../../src/runtime/quantise_weights.js'

const matrix = (rows: number, columns: number, ...values: number[]): WeightMatrix => ({
  name: 'w',
  rows,
  columns,
  values: Float32Array.from(values),
})

/** Column-major, rows padded to four. */
const columnMajor = layout('columns', ['r', 'c'], {
  offset: (i, n) => i.c * (Math.ceil(n.r / 4) * 4) + i.r,
  size: (n) => n.c * Math.ceil(n.r / 4) * 4,
})

describe('quantiseWeights', () => {
  it('maps the largest magnitude of a row to 127', () => {
    const { values, scales } = quantiseWeights(matrix(3, 2, 1, -0.5, -4, 2, 0, 0))
    expect([...values]).toEqual([127, -64, -127, 64, 0, 0])
    expect([...scales]).toEqual([1 / 127, 4 / 127, 0].map(Math.fround))
  })
  it('rounds ties to even', () => {
    // With a largest magnitude of 127, weights are their own number of steps.
    const { values } = quantiseWeights(matrix(1, 7, 127, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5))
    expect([...values].map((value) => value + 0)).toEqual([127, 0, 2, 2, 0, -2, -2])
  })
  it('writes into a layout and leaves its padding zero', () => {
    const { values } = quantiseWeights(matrix(3, 2, 1, -0.5, -4, 2, 0, 3), columnMajor)
    expect([...values]).toEqual([127, -127, 0, 0, -64, 64, 127, 0])
  })
  it('is within half a step of every weight, whatever their size', () =>
    fc.assert(
      fc.property(
        fc.array(fc.float({ min: Math.fround(-1e30), max: Math.fround(1e30), noNaN: true }), { minLength: 1 }),
        (row) => {
          const { values, scales } = quantiseWeights(matrix(1, row.length, ...row))
          const step = Math.max(...row.map(Math.abs)) / 127
          return (
            Math.abs((scales[0] ?? 0) - step) <= step * 2 ** -23 + 2 ** -149 &&
            row.every((weight, i) => Math.abs(weight - (values[i] ?? 0) * step) <= step * (0.5 + 1e-9)) &&
            values.every((value) => Math.abs(value) <= 127)
          )
        },
      ),
    ))
  it('distinguishes a wrong rounding from a right one', () => {
    const { values, scales } = quantiseWeights(matrix(1, 2, 127, 1.5))
    expect(Math.abs(1.5 - ((values[1] ?? 0) + 1) * (scales[0] ?? 0))).toBeGreaterThan(0.5)
  })
  it('quantises a tiny row like any other, and one of zeros to zeros', () => {
    expect([...quantiseWeights(matrix(1, 2, 1e-40, -1e-40)).values]).toEqual([127, -127])
    expect(quantiseWeights(matrix(1, 2, 0, -0))).toEqual({ values: new Int8Array(2), scales: new Float32Array(1) })
  })

  it.each([
    ['NaN', matrix(2, 2, 1, 2, 3, Number.NaN), 'quant.weights', 'tensor w is NaN at [1, 1]'],
    ['infinity', matrix(2, 2, Number.NEGATIVE_INFINITY, 2, 3, 4), 'quant.weights', 'tensor w is -Infinity at [0, 0]'],
    ['another number of values', matrix(2, 2, 1, 2, 3), 'quant.shape', 'tensor w: expected 2 x 2 values, got 3'],
  ])('refuses %s', (_, given, code, message) =>
    expect(() => quantiseWeights(given)).toThrow(expect.objectContaining({ code, message })),
  )
  it('refuses a layout that is not of a matrix', () => {
    const flat = layout('flat', ['i'], { offset: (i) => i.i })
    expect(() => quantiseWeights(matrix(1, 1, 1), flat)).toThrow(expect.objectContaining({ code: 'quant.layout' }))
  })
})

it('channelMaxima are the largest magnitudes of the rows', () =>
  expect([...channelMaxima(matrix(2, 2, 1, -3, 0, 0))]).toEqual([3, 0]))
