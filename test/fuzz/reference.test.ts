/** The fuzzer's references for ops and graphs, against numbers computed by hand and against bodies in Node. A wrong reference would find nothing. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import type { Op } from '../../src/lang/types.js'
import { drawCases } from './data.js'
import { call, type DType, type Expr, element, load, named, num, type OpDesc, reduce, type Stmt, whole } from './describe.js'
import { drawOp } from './draw_op.js'
import { type Held, runOp } from './evaluate.js'
import { matmul } from './evaluate_graph.js'
import { byRows, calibrated, channels } from './evaluate_int8.js'
import { erf } from './functions.js'
import { judge } from './judge.js'
import { exportName, layoutModule, printOp } from './print.js'
import { seedOf } from './random.js'
import { Tally } from './report.js'
import { decode, encode, stored } from './storage.js'
import { add, compare, div, exact, isUnknown, mul, sumOf, type Val } from './value.js'

const held = (dtype: DType, shape: readonly number[], values: readonly number[]): Held => ({
  dtype,
  shape,
  values: values.map(exact),
})
const x = (c: Expr): Expr => load('f32', 'x', c)
const at = (name: string): Expr => named(name)

/** An op over one row of five elements: its body, and its stored values. */
function ofRow(body: readonly Stmt[], value: Expr, dtype: DType = 'f32'): readonly number[] {
  const op: OpDesc = {
    name: 'by_hand',
    family: 'rowwise',
    dims: [{ name: 'n', size: 'row' }],
    inputs: [{ name: 'x', dtype: 'f32', dims: ['n'], domain: { kind: 'float' } }],
    attrs: [],
    rows: [],
    monoids: [
      {
        name: 'linear',
        fields: [
          { name: 'a', type: 'f32', identity: 1, combine: call('f32', 'mul', named('x.a', 'f32'), named('y.a', 'f32')) },
          {
            name: 'b',
            type: 'f32',
            identity: 0,
            combine: call('f32', 'add', call('f32', 'mul', named('x.b', 'f32'), named('y.a', 'f32')), named('y.b', 'f32')),
          },
        ],
      },
    ],
    body,
    outputs: [{ name: 'y', dtype, dims: ['n'], result: { kind: 'row', loop: { length: 'n', index: 'c', value } } }],
  }
  const y = runOp(op, new Map([['x', held('f32', [5], [3, -1, 2, 2, 0.5])]]), { n: 5 }).get('y')
  return (y?.values ?? []).map(({ v }) => v)
}

describe('statements, by hand on 3, -1, 2, 2, 0.5', () => {
  const loop = (value: Expr) => ({ length: 'n', index: 'c', value })
  const cases: readonly (readonly [string, Stmt, Expr, readonly number[]])[] = [
    ['a scan', { kind: 'scan', name: 's', loop: loop(x(at('c'))) }, element('f32', 's', at('c')), [3, 2, 4, 6, 6.5]],
    [
      'argsort, stable',
      { kind: 'argsort', name: 'o', most: 8, loop: loop(x(at('c'))) },
      element('i32', 'o', at('c')),
      [1, 4, 2, 3, 0],
    ],
    [
      'topK, the lower index first',
      { kind: 'topK', name: 'k', k: 6, loop: loop(x(at('c'))) },
      element('i32', 'k.indices', at('c')),
      [0, 2, 3, 4, 1],
    ],
    [
      'topK beyond the row',
      { kind: 'topK', name: 'k', k: 6, loop: loop(x(at('c'))) },
      element('i32', 'k.indices', whole(5)),
      [-1, -1, -1, -1, -1],
    ],
    [
      'the threshold of the two largest',
      { kind: 'threshold', name: 't', target: num(2), loop: loop(x(at('c'))), weight: num(1) },
      named('t', 'f32'),
      [2, 2, 2, 2, 2],
    ],
    [
      'the sum of the second segment of three',
      {
        kind: 'segmentSum',
        name: 'g',
        segment: whole(1),
        offset: { index: 's', value: call('i32', 'minimum', call('i32', 'mul', named('s'), whole(3)), named('n')) },
        loop: loop(x(at('c'))),
      },
      named('g', 'f32'),
      [2.5, 2.5, 2.5, 2.5, 2.5],
    ],
    [
      'a fold that halves',
      {
        kind: 'fold',
        name: 'f',
        each: true,
        length: 'n',
        index: 'c',
        step: [],
        fields: [
          {
            is: 'number',
            name: 'h',
            type: 'f32',
            start: num(1),
            next: call('f32', 'add', call('f32', 'mul', named('h', 'f32'), num(0.5)), x(at('c'))),
          },
        ],
      },
      element('f32', 'f.h', at('c')),
      [3.5, 0.75, 2.375, 3.1875, 2.09375],
    ],
    [
      'a linear recurrence',
      {
        kind: 'monoid',
        name: 'w',
        use: 'scan',
        monoid: 'linear',
        length: 'n',
        index: 'c',
        fields: { a: num(0.5), b: x(at('c')) },
      },
      element('f32', 'w.b', at('c')),
      [3, 0.5, 2.25, 3.125, 2.0625],
    ],
    [
      'the place of the first of the largest',
      { kind: 'const', name: 'a', value: reduce('argmax', 'n', 'c', call('f32', 'minimum', x(at('c')), num(2))) },
      named('a'),
      [0, 0, 0, 0, 0],
    ],
  ]
  it.each(cases)('%s', (_, statement, value, expected) => {
    expect(ofRow([statement], value)).toEqual(expected)
  })

  const seldom: readonly (readonly [string, Stmt, Expr, readonly number[]])[] = [
    [
      'counts that are read at any place',
      { kind: 'histogram', name: 'h', bins: 'n', loop: loop(call('i32', 'toInt', x(at('c')))) },
      element('i32', 'h', call('i32', 'sub', whole(4), at('c'))),
      [0, 1, 2, 0, 1],
    ],
    [
      'the second largest of each element and those behind it',
      {
        kind: 'row',
        name: 'v',
        inner: [
          {
            kind: 'topK',
            name: 'k',
            k: 2,
            loop: {
              length: 'n',
              index: 'j',
              value: call('f32', 'select', call('bool', 'lt', at('j'), at('c')), num(-9), x(at('j'))),
            },
          },
        ],
        loop: loop(element('f32', 'k.values', whole(1))),
      },
      element('f32', 'v', at('c')),
      [2, 2, 2, 0.5, -9],
    ],
    [
      'conditions of a row',
      { kind: 'row', name: 'is', loop: loop(call('bool', 'gt', x(at('c')), num(1))) },
      call('i32', 'select', element('bool', 'is', at('c')), whole(1), whole(0)),
      [1, 0, 1, 1, 0],
    ],
  ]
  it.each(seldom)('%s', (_, statement, value, expected) => {
    expect(ofRow([statement], value)).toEqual(expected)
  })

  it.each([
    ['bitsOf', call('i32', 'bitsOf', x(at('c'))), [0x40400000, 0xbf800000 | 0, 0x40000000, 0x40000000, 0x3f000000]],
    [
      'floatOfBits',
      call('f32', 'floatOfBits', call('i32', 'bitAnd', call('i32', 'bitsOf', x(at('c'))), whole(-(2 ** 23)))),
      [2, -1, 2, 2, 0.5],
    ],
    ['exp2', call('f32', 'exp2', x(at('c'))), [8, 0.5, 4, 4, Math.SQRT2]],
    ['log2', call('f32', 'log2', call('f32', 'exp2', call('f32', 'ceil', x(at('c'))))), [3, -1, 2, 2, 1]],
    ['trunc', call('f32', 'trunc', call('f32', 'mul', x(at('c')), num(-0.5))), [-1, 0, -1, -1, -0]],
  ])('%s', (_, value, expected) => {
    expect(ofRow([], value).map((v) => v + 0)).toEqual(expected.map((v) => v + 0))
  })

  it('integers, with signs', () => {
    const n = call('i32', 'toInt', call('f32', 'mul', x(at('c')), num(3)))
    expect(ofRow([], call('i32', 'idiv', n, whole(2)))).toEqual([4, -1, 3, 3, 0])
    expect(ofRow([], call('i32', 'mod', n, whole(2)))).toEqual([1, -1, 0, 0, 1])
    // 9 * 2,000,000,011 = 18,000,000,099, less four times 2 ** 32.
    expect(ofRow([], call('i32', 'wrappingMul', n, whole(2_000_000_011)))[0]).toBe(820_130_915)
  })
})

describe('storage', () => {
  it.each([
    ['f16', 65_519, 65_504],
    ['f16', 65_520, Number.POSITIVE_INFINITY],
    ['f16', 2 ** -25, 0],
    ['f16', 3 * 2 ** -25, 2 ** -23],
    ['bf16', 1 + 2 ** -8, 1],
    ['bf16', 1 + 3 * 2 ** -8, 1 + 2 ** -6],
    ['f8e4m3', 500, 448],
    ['f8e4m3', 17, 16],
    ['f8e5m2', Number.NEGATIVE_INFINITY, -57_344],
    ['i8', 2.5, 2],
    ['i8', -3.5, -4],
    ['i8', -200, -127],
    ['u8', 300, 255],
    ['u32', -5, 0],
  ] as const)('%s stores %d as %d', (dtype, x, kept) => {
    expect(stored(dtype, x)).toBe(kept)
  })
  it('has the bits of the standards', () => {
    expect([...(encode('f16', [1, -2, 65_504, 2 ** -24]) as Uint16Array)]).toEqual([0x3c00, 0xc000, 0x7bff, 1])
    expect([...(encode('bf16', [1, -0.5]) as Uint16Array)]).toEqual([0x3f80, 0xbf00])
    expect([...(encode('f8e4m3', [1, 448, Number.NaN]) as Uint8Array)]).toEqual([0x38, 0x7e, 0x7f])
    expect([...(encode('f8e5m2', [1, 57_344, Number.POSITIVE_INFINITY]) as Uint8Array)]).toEqual([0x3c, 0x7b, 0x7c])
    for (const dtype of ['f8e4m3', 'f8e5m2'] as const) {
      const codes = Array.from({ length: 256 }, (_, code) => code)
      const numbers = decode(dtype, codes)
      expect(decode(dtype, [...(encode(dtype, numbers) as Uint8Array)])).toEqual(numbers)
    }
  })
})

describe('intervals', () => {
  const about: Val = { v: 1, lo: 0.999, hi: 1.001 }
  it('are exact where float32 is', () => {
    expect(add(exact(0.5), exact(0.25))).toEqual(exact(0.75))
    expect(sumOf([0.125, -3, 2.5].map(exact))).toEqual(exact(-0.375))
    const third = exact(Math.fround(1 / 3))
    expect(mul(third, third).hi).toBeGreaterThan(third.v ** 2)
  })
  it('are undecided where intervals overlap', () => {
    expect(isUnknown(compare('lt', about, exact(1)))).toBe(true)
    expect(compare('lt', about, exact(2))).toEqual(exact(1))
    expect(isUnknown(div(exact(1), { v: 0.1, lo: -0.1, hi: 0.3 }))).toBe(true)
    expect(add(exact(Number.POSITIVE_INFINITY), exact(Number.NEGATIVE_INFINITY)).v).toBeNaN()
  })
  it('have an error function', () => {
    expect([0, 0.5, 1, 2.5, -3].map(erf)).toEqual(
      [0, 0.520_499_877_813_046_5, 0.842_700_792_949_714_9, 0.999_593_047_982_555, -0.999_977_909_503_001_4].map((value) =>
        expect.closeTo(value, 14),
      ),
    )
  })
})

describe('a verdict', () => {
  const values = [
    exact(1),
    exact(Number.NaN),
    { v: 0, lo: Number.NEGATIVE_INFINITY, hi: Number.POSITIVE_INFINITY },
    { v: 0.1, lo: 0.0999, hi: 0.1001 },
  ]
  const of = (actual: readonly number[], dtype: DType = 'f16') => judge('y', { dtype, shape: [2, 2], values }, actual)
  it('passes results within rounding, and counts inconclusive ones', () => {
    expect(of([1, Number.NaN, 7, 0.1])).toEqual({ elements: 4, unjudged: 1, wrong: 0 })
  })
  it('allows about a tenth of elements not judged, more in a short run, but never a third', () => {
    const tally = new Tally()
    tally.ops = 30
    tally.verdict = { elements: 1_000, unjudged: 0, wrong: 0 }
    expect(tally.allowedUnjudged).toBeGreaterThan(200)
    expect(tally.allowedUnjudged).toBeLessThan(300)
    tally.ops = 2_000
    expect(tally.allowedUnjudged).toBeLessThan(121)
  })
  it('names the first element that is wrong', () => {
    expect(of([1, 0, 7, 0.11])).toMatchObject({ wrong: 2, first: 'y[0, 1] is 0, expected NaN' })
    expect(of([1, -127, 7, 0], 'i8')).toMatchObject({ wrong: 0 })
  })
})

it('a matmul is sums of products by its letters', () => {
  const a = held('f32', [2, 3], [1, 2, 3, 4, 5, 6])
  const b = held('f32', [2, 3], [1, 0, 2, 0, 1, 1])
  const numbers = (subscripts: string): number[] => matmul(subscripts, a, b, 'f32').values.map(({ v }) => v)
  expect(numbers('m k, n k -> m n')).toEqual([7, 5, 16, 11])
  expect(numbers('m k, n k -> n m')).toEqual([7, 16, 5, 11])
  expect(numbers('k m, k n -> m n')).toEqual([1, 4, 6, 2, 5, 9, 3, 6, 12])
})

describe('int8 values, by hand', () => {
  const numbers = ({ values }: Held): number[] => values.map(({ v }) => v)
  const x = held('f32', [2, 3], [127, -64.4, 0.5, 2, -1, 0])
  it('of a tensor, with given scales: ties round to the even integer, and values too large are clipped', () => {
    expect(numbers(calibrated(x, 127))).toEqual([127, -64, 0, 2, -1, 0])
    expect(numbers(calibrated(x, 63.5))).toEqual([63.5, -63.5, 0.5, 2, -1, 0])
  })
  it('of rows and of channels, by the largest of each', () => {
    const rows = [127, -64, 0, 2, -(64 * 2) / 127, 0].map((each) => expect.closeTo(each, 12))
    expect(numbers(byRows(x))).toEqual(rows)
    expect(numbers(channels(x))).toEqual(rows)
  })
})

describe('bodies that Node runs', () => {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-fuzz-bodies-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('agree with the descriptions from which they are printed', async () => {
    writeFileSync(join(folder, 'layouts.ts'), layoutModule)
    let compared = 0
    for (let i = 0; i < 30; i++) {
      const op = drawOp(seedOf(17, i), `body_${i}`)
      writeFileSync(join(folder, `${op.name}.ts`), printOp(op))
      const declared = (await import(/* @vite-ignore */ pathToFileURL(join(folder, `${op.name}.ts`)).href))[
        exportName(op.name)
      ] as Op
      const [drawn] = drawCases(op, seedOf(17, i), 2)
      if (drawn === undefined) throw new Error('an op without a case')
      const meant = runOp(op, drawn.inputs, drawn.dims)
      for (const [name, values] of bodyOf(declared, op, drawn)) {
        const wanted = meant.get(name)?.values ?? []
        const wrong = wanted.findIndex((value, at) => !isUnknown(value) && !isNear(value, values[at] ?? Number.NaN))
        expect(
          wrong,
          `${op.name} (${op.family}), ${name} at ${JSON.stringify(drawn.dims)}: ${values[wrong]}, ${JSON.stringify(wanted[wrong])}`,
        ).toBe(-1)
        compared += wanted.length
      }
    }
    expect(compared).toBeGreaterThan(5_000)
  })
})

/** A body's numbers lie where float32 may be, since doubles are one way to compute. */
const isNear = ({ v, lo, hi }: Val, actual: number): boolean =>
  Object.is(v + 0, actual + 0) ||
  (actual >= lo && actual <= hi) ||
  (Math.abs(actual) > 2 ** 128 && Math.abs(v) === Number.POSITIVE_INFINITY)

/** All outputs of a body for all of its rows. */
function bodyOf(declared: Op, op: OpDesc, { dims, inputs }: ReturnType<typeof drawCases>[number]): Map<string, number[]> {
  const accessors = Object.fromEntries(
    [...inputs].map(([name, { shape, values }]) => [
      name,
      (...places: number[]): number => {
        const outside = places.some((place, axis) => !(place >= 0 && place < (shape[axis] ?? 0)))
        const found = values[places.reduce((offset, place, axis) => offset * (shape[axis] ?? 0) + place, 0)]
        if (outside || found === undefined) throw new Error(`${op.name} reads ${name}(${places.join(', ')})`)
        return found.v
      },
    ]),
  )
  const attrs = Object.fromEntries(op.attrs.map(({ name, given }) => [name, given]))
  const rows = declared.body(accessors, { ...dims, ...attrs })
  const results = new Map(op.outputs.map(({ name }) => [name, [] as number[]]))
  const walk = (places: readonly number[]): void => {
    const row = op.rows[places.length]
    if (row !== undefined) {
      for (let i = 0; i < (dims[row.dim] ?? 0); i++) walk([...places, i])
      return
    }
    const made = rows(...places)
    for (const { name, dims: axes } of op.outputs) {
      const value = made[name]
      const length = dims[axes.at(-1) ?? ''] ?? 0
      results
        .get(name)
        ?.push(...(typeof value === 'function' ? Array.from({ length }, (_, c) => value(c)) : [value ?? Number.NaN]))
    }
  }
  walk([])
  return results
}
