/** Scores of attention as kernels compute them: the same numbers, recognised as multiples of the matmul only if they are. */
import { describe, expect, it } from 'vitest'
import { factorOf, withoutDivisions, withPlacesAsFloats, withShifts } from '../../src/emit/attention/score.js'
import { call, f32, i32, local, toFloat } from '../../src/ir/build.js'
import { emptyEnv, evaluateExpr } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'
import { contains } from '../../src/schedule/normalise/rewrite.js'
import { add, distance, i, j, load, mul, raw, sub } from './attention_subject.js'

const attr = (name: string): Expr => ({ kind: 'attr', type: 'f32', name })
const slope = { data: [0.5], shape: [1] }
const at = (score: Expr, product: number, query = 7, key = 3): number => {
  const env = { ...emptyEnv({}), attrs: { scale: 3 }, tensors: { slope } }
  const floats = { i_float: query, j_float: key, apart: key - query - 2, further: 2 }
  const values: Record<string, number> = { raw: product, i: query, j: key, ...floats }
  for (const [name, value] of Object.entries(values)) env.values.set(name, value)
  return Number(evaluateExpr(score, env))
}

describe('factorOf', () => {
  it.each([
    ['the product', raw],
    ['a scale', mul(raw, f32(0.25))],
    ['an attribute first', mul(attr('scale'), raw)],
    ['two scales and a sign', call('neg', mul(call('div', raw, attr('scale')), f32(0.5)))],
  ])('finds %s', (_, score) => {
    const factor = factorOf(score)
    for (const product of [-2, 0.5, 9])
      expect(at(mul(raw, factor ?? f32(Number.NaN)), product)).toBeCloseTo(at(score, product), 12)
  })

  it.each([
    ['a sum', add(mul(raw, f32(0.25)), f32(1))],
    ['a place', mul(raw, toFloat(j))],
    ['a load', mul(raw, load('slope', i))],
    ['a function', call('tanh', raw)],
    ['a square', mul(raw, raw)],
    ['a reciprocal', call('div', f32(1), raw)],
  ])('denies %s', (_, score) => expect(factorOf(score)).toBeUndefined())
})

const divides = (e: Expr, test: (divisor: Expr) => boolean): boolean =>
  contains(e, (node) => node.kind === 'call' && node.fn === 'div' && node.args.slice(1).some(test))

it('divisions by a value that is the same for all keys become multiplications', () => {
  const score = add(call('div', raw, f32(20)), call('div', mul(raw, f32(2)), attr('scale')))
  const cheap = withoutDivisions(score)
  expect(at(cheap, 5)).toBeCloseTo(at(score, 5), 6)
  expect(divides(cheap, ({ kind }) => kind === 'const')).toBe(false)
  expect(
    contains(cheap, (node) => node.kind === 'call' && node.fn === 'div' && contains(node, ({ kind }) => kind === 'local')),
  ).toBe(false)
})

it('divisions by a value that differs per key stay', () => {
  const score = call('div', raw, add(toFloat(j), f32(1)))
  expect(withoutDivisions(score)).toEqual(score)
})

it('indices are read as floats, alone and in differences', () => {
  const score = add(add(raw, mul(distance, f32(0.5))), add(toFloat(i), toFloat(call('mul', j, j))))
  const given = withPlacesAsFloats(score)
  expect(at(given, 2)).toBe(at(score, 2))
  const names = ['i_float', 'apart', 'further']
  for (const name of names) expect(contains(given, (node) => node.kind === 'local' && node.name === name)).toBe(true)
  // A product of indices is not one of floats.
  expect(contains(given, (node) => node.kind === 'call' && node.fn === 'toFloat')).toBe(true)
  expect(withPlacesAsFloats(toFloat(sub(j, call('mul', i, i))))).toEqual(toFloat(sub(j, call('mul', i, i))))
  expect(withPlacesAsFloats(local('raw'))).toEqual(raw)
})

describe('distance of a key from its query', () => {
  const slope = load('slope', i32(0))
  it.each([
    ['a slope by the distance', mul(slope, distance)],
    ['a distance by the slope', mul(distance, slope)],
    ['the other way round', mul(slope, toFloat(sub(i, j)))],
    ['without its sign', mul(slope, call('neg', toFloat(call('abs', sub(i, j)))))],
    ['with the sign outside', mul(toFloat(call('neg', sub(j, i))), slope)],
    ['by the product', mul(raw, distance)],
  ])('%s', (_, term) => {
    const given = withPlacesAsFloats(add(raw, term))
    for (const [query, key] of [
      [7, 3],
      [3, 7],
      [5, 5],
    ] as const) {
      expect(at(given, 2, query, key)).toBe(at(add(raw, term), 2, query, key))
    }
    expect(contains(given, (node) => node.kind === 'call' && node.fn === 'toFloat')).toBe(false)
  })

  it('a slope meets each part of the distance, so that one of them leaves the loop over keys', () => {
    const isFurther = (e: Expr): boolean => contains(e, (node) => node.kind === 'local' && node.name === 'further')
    const given = withPlacesAsFloats(mul(slope, distance))
    expect(given.kind === 'call' && given.fn === 'add' && given.args.filter(isFurther)).toHaveLength(1)
  })
})

it('quotients and remainders of places by powers of two are shifts and masks', () => {
  const whole = (fn: 'idiv' | 'mod', of: Expr, by: number): Expr => toFloat(call(fn, of, i32(by)))
  for (const by of [1, 2, 16, 12]) {
    const score = add(whole('idiv', j, by), mul(f32(100), whole('mod', i, by)))
    const shifted = withShifts(score)
    for (const place of [0, 1, 15, 16, 37]) expect(at(shifted, 0, place, place)).toBe(at(score, 0, place, place))
    expect(contains(shifted, (node) => node.kind === 'call' && (node.fn === 'idiv' || node.fn === 'mod'))).toBe(by === 12)
  }
  // A value that is not an index may be negative.
  const apart = whole('mod', sub(i, j), 4)
  expect(withShifts(apart)).toEqual(apart)
})
