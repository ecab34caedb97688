/** Effect of rounding in computed queries and keys on scores, derived from bodies: none if both are stored in memory, otherwise by their size. */
import { expect, it } from 'vitest'
import { call, dim, f32, i32, index, local, toFloat } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import { accuracyOf } from '../../src/ir/facts/accuracy.js'
import { type Domain, noFacts } from '../../src/ir/facts/facts.js'
import type { TensorParam } from '../../src/ir/kernel.js'
import { rowMajor } from '../../src/ir/layout.js'
import type { DecodeAttentionKernel } from '../../src/ir/template.js'

const load = (tensor: string, ...indices: readonly Expr[]): Expr => ({ kind: 'load', type: 'f32', tensor, indices })
const [b, h, j, c] = [index('b'), index('h'), index('j'), index('c')]
const element = (tensor: string): Expr => load(tensor, b, h, c)
const gain = load('gain', c)

/** The sum of the squares of a row, in a separate loop. */
const squares = (tensor: string): Expr => ({
  kind: 'fold',
  type: 'f32',
  monoid: 'sum',
  length: dim('d'),
  index: `k_${tensor}`,
  value: call('square', load(tensor, b, h, index(`k_${tensor}`))),
})
const overRms = (tensor: string): Expr => {
  const mean = call('div', squares(tensor), toFloat(dim('d')))
  return call('mul', element(tensor), call('rsqrt', call('add', mean, f32(1e-5))))
}
const overNorm = (tensor: string): Expr => call('mul', element(tensor), call('rsqrt', squares(tensor)))
const rotated = (row: Expr): Expr => call('sub', call('mul', row, load('table', c)), call('mul', row, load('table2', c)))

const tensor = (name: string, dims: readonly string[], access: TensorParam['access'] = 'in'): TensorParam => {
  return { name, access, dtype: { param: 'T' }, dims, layout: rowMajor(dims) }
}

interface Parts {
  readonly query?: Expr
  readonly key?: Expr
  readonly value?: Expr
  readonly score?: Expr
  /** Range of the new rows of queries and keys. */
  readonly drawn?: Domain
}

const raw = local('raw')

/** A step over keys and values in memory, which a row joins. */
function step({
  query = element('q'),
  key = element('k'),
  value = element('v'),
  score = call('mul', raw, f32(0.125)),
  drawn,
}: Parts) {
  const row = ['r', 'g', 'd']
  const cache = ['r', 'g', 'u', 'd']
  const at = (name: string, place: Expr) => ({ tensor: name, indices: [b, h, place, i32(0)] })
  const kernel: DecodeAttentionKernel = {
    kind: 'decode attention',
    name: 'step',
    source: { file: 'step.ts', line: 1, column: 1 },
    dims: ['r', 'g', 'u', 'd'],
    types: { T: ['f32', 'f16'] },
    attrs: [],
    tensors: [
      ...['q', 'k', 'v'].map((name) => tensor(name, row)),
      ...['gain', 'table', 'table2'].map((name) => tensor(name, ['d'])),
      ...['keys', 'values'].map((name) => tensor(name, cache)),
      ...['keysAfter', 'valuesAfter'].map((name) => tensor(name, cache, 'out')),
      tensor('out', row, 'out'),
    ],
    ...(drawn === undefined ? {} : { facts: { ...noFacts, inputs: { q: drawn, k: drawn } } }),
    batch: dim('r'),
    heads: dim('g'),
    shared: i32(1),
    queries: i32(1),
    headDim: dim('d'),
    valueDim: dim('d'),
    places: dim('u'),
    query,
    owner: b,
    key: at('keys', j),
    value: at('values', j),
    out: { tensor: 'out', indices: [b, h, i32(0)] },
    range: { lower: i32(0), upper: dim('u') },
    score,
    denominator: local('total'),
    stored: local('result'),
    fresh: { place: i32(0), key, value, keyCache: at('keysAfter', j), valueCache: at('valuesAfter', j) },
  }
  return accuracyOf(kernel)
}

/** Rounding of the results of such a step. */
const rounded = (parts: Parts) => step(parts).out?.rounded
const near = (rms: number, roots: number, degree: number) => ({ rms: expect.closeTo(rms, 2), roots, degree })

it('nothing is rounded if queries, keys and values are in memory', () => {
  expect(step({})).toEqual({
    keysAfter: { class: 'exact', integers: true },
    valuesAfter: { class: 'exact', integers: true },
    out: { class: 'attention', integers: false, length: 'd' },
  })
})

it('a computed key moves scores by their size, which grows with the root of its length', () => {
  expect(rounded({ key: call('mul', element('k'), gain) })).toEqual(near(0.125, 1, 3))
  expect(rounded({ key: rotated(element('k')) })).toEqual(near(0.125 * Math.SQRT2, 1, 3))
  // The query as well, which is rounded and of the same size.
  expect(rounded({ query: rotated(element('q')), key: rotated(element('k')) })).toEqual(near(0.25 * Math.SQRT2, 1, 4))
  // Its twin with unchanged rows: only the value is computed.
  expect(step({ value: call('mul', element('v'), gain) }).out).toEqual({
    class: 'attention',
    integers: false,
    length: 'd',
    scale: 2,
  })
})

it('numbers of four bits are as large as those are: scores of them err by more, and so do averages', () => {
  const bits = call('bitAnd', call('shiftRight', { kind: 'load', type: 'i32', tensor: 'q', indices: [b, h, c] }, i32(4)), i32(15))
  const number = toFloat(call('sub', bits, i32(8)))
  const size = Math.hypot(15 / Math.sqrt(3), 8)
  const scaleOf = (parts: Parts) => step(parts).out?.scale
  expect(scaleOf({ key: call('mul', number, gain) })).toBeCloseTo(size, 1)
  expect(scaleOf({ value: call('mul', number, gain) })).toBeCloseTo(2 * size, 1)
  expect(scaleOf({ key: call('mul', number, gain), value: call('mul', number, gain) })).toBeCloseTo(2 * size ** 2, -1)
  // Their twin: the magnitude of an index implies nothing about the elements that it selects.
  const place = toFloat({ kind: 'load', type: 'i32', tensor: 'q', indices: [b, h, c] })
  expect(scaleOf({ key: call('mul', place, gain) })).toBeUndefined()
})

it('a normed row has size 1, any other its own', () => {
  const large: Domain = { from: [-64], to: [64] }
  const normed = { query: call('mul', overRms('q'), gain), key: call('mul', overRms('k'), gain) }
  expect(rounded(normed)).toEqual(near(0.125 * Math.SQRT2, 1, 2))
  expect(rounded({ ...normed, drawn: large })).toEqual(rounded(normed))
  expect(rounded({ query: call('neg', element('q')), key: call('neg', element('k')), drawn: large })).toEqual({
    rms: Number((0.125 * Math.SQRT2 * 64 ** 2).toPrecision(3)),
    roots: 1,
    degree: 1,
  })
  // Over its norm, the root of all squares, a query shrinks as it gets longer: scores of the keys in memory do not grow.
  expect(rounded({ query: overNorm('q'), key: overNorm('k') })).toEqual(near(0.125 * Math.SQRT2, 0, 1))
})

it('changes of the score after the matmul count: factors, caps, the root of the length', () => {
  const key = call('neg', element('k'))
  expect(rounded({ key, score: call('mul', raw, f32(0.5)) })).toEqual(near(0.5, 1, 2))
  expect(rounded({ key, score: call('mul', raw, call('rsqrt', toFloat(dim('d')))) })).toEqual(near(1, 0, 2))
  const capped = call('mul', f32(30), call('tanh', call('div', call('mul', raw, f32(0.125)), f32(30))))
  expect(rounded({ key, score: capped })).toEqual(near(0.125, 1, 2))
  const masked = call('select', call('lt', j, i32(3)), call('add', call('mul', raw, f32(0.125)), load('table', j)), f32(-1e30))
  expect(rounded({ key, score: masked })).toEqual(near(0.125, 1, 2))
})

it('stored intermediate rows have the error of their computation', () => {
  const { keysAfter } = step({ key: rotated(element('k')) })
  expect(keysAfter).toEqual({ class: 'elementwise', integers: true })
  expect(step({ key: overRms('k') }).keysAfter).toMatchObject({ class: 'reduction', length: 'd' })
})
