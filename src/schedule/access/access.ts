/**
 * Access pattern of a tensor along the loop over a row. It decides between 16-byte packs, one load for the whole row, and element by element
 * access. Derived from the layout's offset function, not from the layout's name.
 */
import { dim, i32 } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { getOwn } from '../../ir/get_own.js'
import type { TensorParam } from '../../ir/kernel.js'
import { substitute } from '../../ir/walk.js'
import { rejoin } from '../normalise/rejoin.js'
import { substituteDims } from '../normalise/rewrite.js'
import { divisorOf, isMultiple, type Multiples, noMultiples } from './multiples.js'

export type Access =
  /** The same element for the whole row. */
  | { readonly kind: 'uniform' }
  /** Consecutive elements, in runs of `run` elements that begin at multiples of `run` (Infinity: the whole row). */
  | { readonly kind: 'contiguous'; readonly run: number }
  /** Anything else. */
  | { readonly kind: 'gather' }

/** Element offset of an access: the layout's function of the access' indices and the tensor's extents. Axes that are walked as one are rejoined. */
export function offsetOf(tensor: TensorParam, indices: readonly Expr[], fixed: Readonly<Record<string, number>>): Expr {
  const inIndices = new Map(tensor.layout.axes.map((axis, i) => [axis, indices[i] ?? i32(0)]))
  return rejoin(substitute(substituteDims(tensor.layout.offset, extentsOf(tensor, fixed)), inIndices))
}

/** Number of elements in the tensor's buffer, padding included. */
export const sizeOf = (tensor: TensorParam, fixed: Readonly<Record<string, number>>): Expr =>
  substituteDims(tensor.layout.size, extentsOf(tensor, fixed))

function extentsOf(tensor: TensorParam, fixed: Readonly<Record<string, number>>): Map<string, Expr> {
  return new Map(
    tensor.layout.axes.map((axis, i) => {
      const name = tensor.dims[i]
      if (name === undefined) throw new Error(`internal: tensor ${tensor.name} has no dimension for axis ${axis}`)
      const known = getOwn(fixed, name)
      return [axis, known === undefined ? dim(name) : i32(known)]
    }),
  )
}

interface Stride {
  /** Increment of the value per step of the index; NaN if it is not one known number. */
  readonly step: number
  /** Length of the runs within which the step holds. Each run begins at a multiple of it. */
  readonly run: number
}

const uniform: Stride = { step: 0, run: Number.POSITIVE_INFINITY }
const unknown: Stride = { step: Number.NaN, run: 1 }

/** Classifies an offset by its increment per step of the loop index. @param multiples divisors of dimensions */
export function classify(offset: Expr, index: string, multiples: Multiples = noMultiples): Access {
  const { step, run } = strideOf(offset, { index, multiples })
  if (step === 0 && run === Number.POSITIVE_INFINITY) return { kind: 'uniform' }
  return step === 1 && run > 1 ? { kind: 'contiguous', run } : { kind: 'gather' }
}

/** The loop index, and divisors of dimensions. */
interface Along {
  readonly index: string
  readonly multiples: Multiples
}

function strideOf(e: Expr, along: Along): Stride {
  if (e.kind === 'index') return e.name === along.index ? { step: 1, run: Number.POSITIVE_INFINITY } : uniform
  if (e.kind === 'load') return e.indices.every((i) => isUniform(i, along)) ? uniform : unknown
  if (e.kind === 'fold') return isUniform(e.length, along) && isUniform(e.value, along) ? uniform : unknown
  if (e.kind === 'element') return unknown
  if (e.kind !== 'call') return uniform
  const strides = e.args.map((arg) => strideOf(arg, along))
  // Runs common to all arguments: those of 8 and of 12 have runs of 4 in common.
  const run = strides.map((each) => each.run).reduce(commonRun, Number.POSITIVE_INFINITY)
  // A value computed from arguments that are constant within a run is constant there too.
  if (strides.every(({ step }) => step === 0)) return { step: 0, run }
  const [a, b, c] = e.args
  const [sa, sb, sc] = strides
  if (e.fn === 'select' && a !== undefined && c !== undefined && sb !== undefined && sb.step === sc?.step)
    return isUniform(a, along) ? { step: sb.step, run } : unknown
  if (a === undefined || b === undefined || sa === undefined || sb === undefined) return unknown
  switch (e.fn) {
    case 'add':
      return { step: sa.step + sb.step, run }
    case 'sub':
      return { step: sa.step - sb.step, run }
    case 'mul': {
      const factor = numberOf(b)
      return { step: factor === undefined ? sb.step * (numberOf(a) ?? Number.NaN) : sa.step * factor, run }
    }
    case 'idiv':
      return blocked(a, along, blockOf(b, along), 0)
    case 'shiftRight':
      return blocked(a, along, powerOfTwo(numberOf(b)), 0)
    case 'mod':
      return blocked(a, along, blockOf(b, along), 1)
    case 'bitAnd': {
      const mask = numberOf(b)
      return blocked(a, along, mask !== undefined && Number.isInteger(Math.log2(mask + 1)) ? mask + 1 : undefined, 1)
    }
    default:
      return unknown
  }
}

/** Longest run that divides the runs of both. */
function commonRun(a: number, b: number): number {
  if (a === Number.POSITIVE_INFINITY || b === Number.POSITIVE_INFINITY) return Math.min(a, b)
  return b === 0 ? a : commonRun(b, a % b)
}

/** Shorter runs are not worth narrower chunks. */
const shortestRun = 4

/** Length of the blocks of a divisor: the number itself, or for a run-time number the power of two that facts state to divide it. */
function blockOf(divisor: Expr, { multiples }: Along): number | undefined {
  const known = numberOf(divisor)
  if (known !== undefined) return known
  const stated = divisorOf(divisor, multiples)
  const power = stated & -stated
  return power >= shortestRun ? power : undefined
}

/**
 * Stride of `c / q` (constant) or `c % q` (moving by one) while c stays within one block of q. Holds for the index itself, whose blocks begin at
 * multiples of q, and for the index plus a multiple of q.
 */
function blocked(a: Expr, along: Along, block: number | undefined, step: 0 | 1): Stride {
  return block !== undefined && block > 0 && isAligned(a, along, block) ? { step, run: block } : unknown
}

function isAligned(e: Expr, along: Along, block: number): boolean {
  if (e.kind === 'index') return e.name === along.index
  const [a, b] = e.kind === 'call' && e.fn === 'add' ? e.args : []
  if (a === undefined || b === undefined) return false
  const beside = (part: Expr, rest: Expr): boolean =>
    isAligned(part, along, block) && isUniform(rest, along) && isMultiple(rest, block, along.multiples)
  return beside(a, b) || beside(b, a)
}

const isUniform = (e: Expr, along: Along): boolean => {
  const { step, run } = strideOf(e, along)
  return step === 0 && run === Number.POSITIVE_INFINITY
}

export const numberOf = (e: Expr): number | undefined => (e.kind === 'const' && typeof e.value === 'number' ? e.value : undefined)
const powerOfTwo = (bits: number | undefined): number | undefined => (bits === undefined ? undefined : 2 ** bits)
