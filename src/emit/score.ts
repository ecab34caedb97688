/**
 * Scores of attention as kernels compute them best: without divisions by what is the same for all keys, with places as floats that a
 * kernel has at hand, and known to be a multiple of the product where that is all they are. Runs when slots are written.
 */
import { call, f32, i32, local } from '../ir/build.js'
import type { Expr } from '../ir/expr.js'
import { operands, rewrite } from '../ir/walk.js'
import { contains } from '../schedule/rewrite.js'

/**
 * The places of a query and a key as floats, which are exact for as many as a launch allows; and how far the key is behind the query, as
 * a sum of what is the same for all keys of a thread's tile and of a number that is known when a kernel is compiled.
 */
export const placesAsFloats = { i: 'i_float', j: 'j_float', apart: 'apart', further: 'further' } as const

const varies = (e: Expr): boolean =>
  contains(e, (node) => (node.kind === 'local' && node.name !== placesAsFloats.i) || (node.kind === 'index' && node.name === 'j'))

/** A score with multiplications by reciprocals in place of divisions, which a compiler moves out of the loop over keys. */
export const withoutDivisions = (score: Expr): Expr =>
  rewrite(score, (node) => {
    if (node.kind !== 'call' || node.fn !== 'div') return node
    const [value, divisor] = node.args
    if (value === undefined || divisor === undefined || !varies(value) || varies(divisor)) return node
    const inverse = divisor.kind === 'const' ? f32(Math.fround(1 / Number(divisor.value))) : call('div', f32(1), divisor)
    return call('mul', value, inverse)
  })

/**
 * A score in terms of places as floats: conversions of places, of their differences and of these without a sign are read off them. A
 * product with a difference becomes one with each part of it, of which the first leaves the loop over keys.
 */
export const withPlacesAsFloats = (score: Expr): Expr =>
  rewrite(score, (node) => {
    if (node.kind !== 'call') return node
    const [a, b] = node.args
    if (node.fn === 'toFloat' && a !== undefined) return asFloat(a) ?? node
    if (node.fn !== 'mul' || a === undefined || b === undefined) return node
    return isApart(b) && !varies(a) ? times(a, b) : isApart(a) && !varies(b) ? times(b, a) : node
  })

const apart = call('add', local(placesAsFloats.apart), local(placesAsFloats.further))
const backward = call('neg', apart)
const isApart = (e: Expr): boolean => e === apart || e === backward

/** A factor that is the same for all keys, times how far key and query are apart. */
function times(factor: Expr, distance: Expr): Expr {
  const signed = distance === apart ? factor : call('neg', factor)
  return call('add', call('mul', signed, local(placesAsFloats.apart)), call('mul', signed, local(placesAsFloats.further)))
}

/** An integer as a float, from places that are floats already: exact, as both are. */
function asFloat(e: Expr): Expr | undefined {
  if (e.kind === 'index') return e.name === 'i' || e.name === 'j' ? local(placesAsFloats[e.name]) : undefined
  if (e.kind !== 'call') return undefined
  const [a, b] = e.args
  if (e.fn === 'neg' || e.fn === 'abs') {
    const of = a === undefined ? undefined : asFloat(a)
    return of === undefined ? undefined : of === apart && e.fn === 'neg' ? backward : call(e.fn, of)
  }
  if (e.fn !== 'sub' || a?.kind !== 'index' || b?.kind !== 'index') return undefined
  if (a.name === 'j' && b.name === 'i') return apart
  return a.name === 'i' && b.name === 'j' ? backward : undefined
}

/** Quotients and remainders of places by powers of two as shifts and masks: a place is never negative, which a compiler cannot know. */
export const withShifts = (expr: Expr): Expr =>
  rewrite(expr, (node) => {
    if (node.kind !== 'call' || (node.fn !== 'idiv' && node.fn !== 'mod')) return node
    const [place, by] = node.args
    const bits = by?.kind === 'const' ? Math.log2(Number(by.value)) : Number.NaN
    if (place?.kind !== 'index' || !Number.isInteger(bits) || bits < 0) return node
    return node.fn === 'idiv' ? call('shiftRight', place, i32(bits)) : call('bitAnd', place, i32(2 ** bits - 1))
  })

/** What a score multiplies the product with, if that is all it does, by something the host knows. */
export function factorOf(score: Expr): Expr | undefined {
  if (score.kind === 'local' && score.name === 'raw') return f32(1)
  if (score.kind !== 'call') return undefined
  const [a, b] = score.args
  if (score.fn === 'neg' && a !== undefined) return scaledBy(factorOf(a), f32(-1))
  if (a === undefined || b === undefined) return undefined
  if (score.fn === 'mul') return isKnown(b) ? scaledBy(factorOf(a), b) : isKnown(a) ? scaledBy(factorOf(b), a) : undefined
  return score.fn === 'div' && isKnown(b) ? scaledBy(factorOf(a), call('div', f32(1), b)) : undefined
}

const isKnown = (e: Expr): boolean =>
  e.kind === 'const' || e.kind === 'dim' || e.kind === 'attr' || (e.kind === 'call' && operands(e).every(isKnown))

function scaledBy(factor: Expr | undefined, by: Expr): Expr | undefined {
  if (factor === undefined) return undefined
  return factor.kind === 'const' && factor.value === 1 ? by : call('mul', factor, by)
}
