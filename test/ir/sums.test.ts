/** Sums of extents: a sum is a dimension with a definition, and has a value if all its dimensions have one. */
import { describe, expect, it } from 'vitest'
import {
  commonExtent,
  dimsIn,
  divideExtent,
  evaluateDim,
  evaluateExtent,
  parseExtent,
  printExtent,
  sumExtents,
} from '../../src/ir/shape.js'
import { substitute } from '../../src/lang/program/match.js'
import { refusal } from '../refusal.js'

const extents = (text: string) => text.split(' ').map(parseExtent)
const sum = (text: string) => sumExtents(extents(text))

describe('a sum of extents', () => {
  it.each([
    ['h*d g*d g*d', '(2*g+h)*d'],
    ['g*d h*d g*d', '(2*g+h)*d'],
    ['n n', '2*n'],
    ['2*n n', '3*n'],
    ['h i', '(h+i)'],
    ['2*h*d 4*d', '2*(2+h)*d'],
    ['d*d d', '(1+d)*d'],
    ['3 4', '7'],
  ])('of %s is %s', (given, printed) => {
    expect(printExtent(sum(given))).toBe(printed)
  })

  it('has the number of its parts together, and depends on their dimensions', () => {
    const whole = sum('h*d g*d g*d')
    expect(evaluateExtent(whole, { h: 6, g: 2, d: 4 })).toBe((6 + 2 + 2) * 4)
    expect(dimsIn([whole]).toSorted()).toEqual(['d', 'g', 'h'])
    expect(evaluateDim('(2*g+h)', { h: 6, g: 2 })).toBe(10)
    // Sums of sums, and products in them.
    const twice = sumExtents([whole, parseExtent('i')])
    expect(evaluateExtent(twice, { h: 6, g: 2, d: 4, i: 5 })).toBe(45)
  })

  it('has none if a dimension has none', () => {
    expect(evaluateDim('(2*g+h)', { h: 6 })).toBeUndefined()
    const { code, message } = refusal(() => evaluateExtent(sum('h*d g*d'), { h: 6, d: 4 }))
    expect([code, message]).toEqual(['graph.dim', 'dimension (g+h) of (g+h)*d has no value'])
  })

  it('is the sum of the values of its dimensions in a program', () => {
    const known = { h: parseExtent('4*q'), g: parseExtent('q') }
    expect(printExtent(substitute(sum('h*d g*d g*d'), known))).toBe('6*d*q')
  })
})

it('extents cancel common factors', () => {
  const given = extents('2*h*d*d 4*g*d*d 6*d*d')
  const common = commonExtent(given)
  expect(printExtent(common)).toBe('2*d*d')
  expect(given.map((extent) => printExtent(divideExtent(extent, common)))).toEqual(['h', '2*g', '3'])
})
