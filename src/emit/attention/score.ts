/**
 * Rewrites scores of attention for fast evaluation. Divisions by values that are constant over keys are removed, and places are the floats that a
 * kernel already has. Scores that are only a multiple of the matmul result are recognised. Runs when slots are emitted.
 */
import { call, f32, i32, local } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { operands, rewrite } from '../../ir/walk.js'
import { contains } from '../../schedule/normalise/rewrite.js'

/**
 * Places of a query and a key as floats, exact for as many as a launch allows, and the distance from query to key. The distance is the sum of a
 * value that is the same for all keys of a thread's tile and a number known at compile time.
 */
export const placesAsFloats = { i: 'i_float', j: 'j_float', apart: 'apart', further: 'further' } as const

const varies = (e: Expr): boolean =>
  contains(e, (node) => (node.kind === 'local' && node.name !== placesAsFloats.i) || (node.kind === 'index' && node.name === 'j'))

/** A score with multiplications by reciprocals instead of divisions; a compiler moves the reciprocals out of the loop over keys. */
export const withoutDivisions = (score: Expr): Expr =>
  rewrite(score, (node) => {
    if (node.kind !== 'call' || node.fn !== 'div') return node
    const [value, divisor] = node.args
    if (value === undefined || divisor === undefined || !varies(value) || varies(divisor)) return node
    const inverse = divisor.kind === 'const' ? f32(Math.fround(1 / Number(divisor.value))) : call('div', f32(1), divisor)
    return call('mul', value, inverse)
  })

/**
 * A score with places as floats: replaces conversions of places, of their differences and of absolute differences. A multiplication by a difference
 * is distributed over its two parts, of which the first leaves the loop over keys.
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

/** A factor that is constant over keys, times the distance between key and query. */
function times(factor: Expr, distance: Expr): Expr {
  const signed = distance === apart ? factor : call('neg', factor)
  return call('add', call('mul', signed, local(placesAsFloats.apart)), call('mul', signed, local(placesAsFloats.further)))
}

/** An integer as a float, computed from places that are floats already: exact, as both are. */
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

/** Quotients and remainders of places by powers of two as shifts and masks. A place is never negative, which a compiler cannot know. */
export const withShifts = (expr: Expr): Expr =>
  rewrite(expr, (node) => {
    if (node.kind !== 'call' || (node.fn !== 'idiv' && node.fn !== 'mod')) return node
    const [place, by] = node.args
    const bits = by?.kind === 'const' ? Math.log2(Number(by.value)) : Number.NaN
    if (place?.kind !== 'index' || !Number.isInteger(bits) || bits < 0) return node
    return node.fn === 'idiv' ? call('shiftRight', place, i32(bits)) : call('bitAnd', place, i32(2 ** bits - 1))
  })

/** Factor of a score that only multiplies the matmul result by a value known to the host; undefined for any other score. */
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
