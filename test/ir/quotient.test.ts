/** Extents that are quotients of others: their values, their form in other dimensions, and values that are not multiples. */
import { expect, it } from 'vitest'
import { inPython, plainText, sizeText } from '../../src/export/text.js'
import { dimsIn, divideInto, evaluateExtent, multiplyExtents, parseExtent, printExtent, sumExtents } from '../../src/ir/shape.js'
import { substitute } from '../../src/lang/program/match.js'
import { refusal } from '../refusal.js'

const quotient = (of: string, by: string) => divideInto(parseExtent(of), parseExtent(by))

it('cancel common factors', () => {
  expect(printExtent(quotient('h', 'g'))).toBe('(h/g)')
  expect(printExtent(quotient('4*h*d', '2*h'))).toBe('2*d')
  expect(printExtent(quotient('h*d', 'g*d'))).toBe('(h/g)')
})

it('times their divisor are the dividend', () => {
  expect(printExtent(multiplyExtents([parseExtent('r'), parseExtent('g'), quotient('h', 'g'), parseExtent('d')]))).toBe('d*h*r')
  expect(printExtent(multiplyExtents([parseExtent('u'), quotient('h', 'g')]))).toBe('(h/g)*u')
})

it('have a value if one is a multiple of the other, and a reason otherwise', () => {
  expect(evaluateExtent(quotient('h', 'g'), { h: 12, g: 4 })).toBe(3)
  expect(evaluateExtent(quotient('h', 'g'), { h: 0, g: 0 })).toBe(0)
  const { code, message } = refusal(() => evaluateExtent(quotient('h', 'g'), { h: 6, g: 4 }))
  expect([code, message]).toEqual(['graph.extent', 'h is not a multiple of g: 6 of 4'])
})

it('are numbers and quotients of sums in other dimensions', () => {
  const known = { h: parseExtent('32'), g: parseExtent('8') }
  expect(printExtent(substitute(quotient('h', 'g'), known))).toBe('4')
  const sum = sumExtents([parseExtent('a'), parseExtent('b')])
  expect(evaluateExtent(substitute(quotient('h', 'g'), { h: sum, g: parseExtent('c') }), { a: 5, b: 7, c: 3 })).toBe(4)
  expect(refusal(() => substitute(quotient('h', 'g'), { h: parseExtent('6'), g: parseExtent('4') })).code).toBe('graph.extent')
})

it('are written as quotients of integers in exports', () => {
  const extent = multiplyExtents([parseExtent('2*r'), quotient('h', 'g')])
  expect(sizeText(extent)).toBe('Size(2) * ((d_h) / (d_g)) * d_r')
  expect(plainText(extent, (name) => `d_${name}`, inPython)).toBe('2 * ((d_h) // (d_g)) * d_r')
})

it('of a program read the dimensions in them', () => {
  expect(dimsIn([quotient('h', 'g')])).toEqual(['h', 'g'])
})
