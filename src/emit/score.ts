/**
 * Scores of attention as kernels compute them best: without divisions by what is the same for all keys, with places as floats that a
 * kernel has at hand, and known to be a multiple of the product where that is all they are. Runs when slots are written.
 */
import { call, f32, local } from '../ir/build.js'
import type { Expr } from '../ir/expr.js'
import { operands, rewrite } from '../ir/walk.js'
import { contains } from '../schedule/rewrite.js'

/** The places of a query and a key as floats, which are exact for as many as a launch allows. */
export const placesAsFloats = { i: 'i_float', j: 'j_float' } as const

const varies = (e: Expr): boolean =>
  contains(e, (node) => (node.kind === 'local' && node.name === 'raw') || (node.kind === 'index' && node.name === 'j'))

/** A score with multiplications by reciprocals in place of divisions, which a compiler moves out of the loop over keys. */
export const withoutDivisions = (score: Expr): Expr =>
  rewrite(score, (node) => {
    if (node.kind !== 'call' || node.fn !== 'div') return node
    const [value, divisor] = node.args
    if (value === undefined || divisor === undefined || !varies(value) || varies(divisor)) return node
    const inverse = divisor.kind === 'const' ? f32(Math.fround(1 / Number(divisor.value))) : call('div', f32(1), divisor)
    return call('mul', value, inverse)
  })

/** A score in terms of places as floats: conversions of places, and of their differences, are read off them. */
export const withPlacesAsFloats = (score: Expr): Expr =>
  rewrite(score, (node) => {
    const [of] = node.kind === 'call' && node.fn === 'toFloat' ? node.args : []
    if (of === undefined) return node
    const place = asFloat(of)
    if (place !== undefined) return place
    const [left, right] = of.kind === 'call' && of.fn === 'sub' ? of.args.map(asFloat) : []
    return left === undefined || right === undefined ? node : call('sub', left, right)
  })

const asFloat = (e: Expr): Expr | undefined =>
  e.kind === 'index' && (e.name === 'i' || e.name === 'j') ? local(placesAsFloats[e.name]) : undefined

/** What a score multiplies the product with, if that is all it does, by something the host knows. */
export function factorOf(score: Expr): Expr | undefined {
  if (score.kind === 'local' && score.name === 'raw') return f32(1)
  if (score.kind !== 'call') return undefined
  const [a, b] = score.args
  if (score.fn === 'neg' && a !== undefined) return times(factorOf(a), f32(-1))
  if (a === undefined || b === undefined) return undefined
  if (score.fn === 'mul') return isKnown(b) ? times(factorOf(a), b) : isKnown(a) ? times(factorOf(b), a) : undefined
  return score.fn === 'div' && isKnown(b) ? times(factorOf(a), call('div', f32(1), b)) : undefined
}

const isKnown = (e: Expr): boolean =>
  e.kind === 'const' || e.kind === 'dim' || e.kind === 'attr' || (e.kind === 'call' && operands(e).every(isKnown))

function times(factor: Expr | undefined, by: Expr): Expr | undefined {
  if (factor === undefined) return undefined
  return factor.kind === 'const' && factor.value === 1 ? by : call('mul', factor, by)
}
