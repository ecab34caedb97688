/** Scores of attention as kernels compute them: the same numbers, found to be multiples of the product only where they are. */
import { describe, expect, it } from 'vitest'
import { factorOf, withoutDivisions, withPlacesAsFloats } from '../../src/emit/score.js'
import { call, f32, local, toFloat } from '../../src/ir/build.js'
import { emptyEnv, evaluateExpr } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'
import { contains } from '../../src/schedule/rewrite.js'
import { add, distance, i, j, load, mul, raw, sub } from './attention_subject.js'

const attr = (name: string): Expr => ({ kind: 'attr', type: 'f32', name })
const slope = { data: [0.5], shape: [1] }
const at = (score: Expr, product: number, query = 7, key = 3): number => {
  const env = { ...emptyEnv({}), attrs: { scale: 3 }, tensors: { slope } }
  const values: Record<string, number> = { raw: product, i: query, j: key, i_float: query, j_float: key }
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

it('divisions by what is the same for all keys become products', () => {
  const score = add(call('div', raw, f32(20)), call('div', mul(raw, f32(2)), attr('scale')))
  const cheap = withoutDivisions(score)
  expect(at(cheap, 5)).toBeCloseTo(at(score, 5), 6)
  expect(divides(cheap, ({ kind }) => kind === 'const')).toBe(false)
  expect(
    contains(cheap, (node) => node.kind === 'call' && node.fn === 'div' && contains(node, ({ kind }) => kind === 'local')),
  ).toBe(false)
})

it('divisions by what differs from key to key stay', () => {
  const score = call('div', raw, add(toFloat(j), f32(1)))
  expect(withoutDivisions(score)).toEqual(score)
})

it('places are read as floats, alone and in differences', () => {
  const score = add(add(raw, mul(distance, f32(0.5))), add(toFloat(i), toFloat(call('mul', j, j))))
  const given = withPlacesAsFloats(score)
  expect(at(given, 2)).toBe(at(score, 2))
  expect(contains(given, (node) => node.kind === 'local' && node.name === 'j_float')).toBe(true)
  // A product of places is not one of floats.
  expect(contains(given, (node) => node.kind === 'call' && node.fn === 'toFloat')).toBe(true)
  expect(withPlacesAsFloats(toFloat(sub(j, call('mul', i, i))))).toEqual(toFloat(sub(j, call('mul', i, i))))
  expect(withPlacesAsFloats(local('raw'))).toEqual(raw)
})
