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

/** Classifies an offset by its increment per step of the loop index. */
export function classify(offset: Expr, index: string): Access {
  const { step, run } = strideOf(offset, index)
  if (step === 0 && run === Number.POSITIVE_INFINITY) return { kind: 'uniform' }
  return step === 1 && run > 1 ? { kind: 'contiguous', run } : { kind: 'gather' }
}

function strideOf(e: Expr, index: string): Stride {
  if (e.kind === 'index') return e.name === index ? { step: 1, run: Number.POSITIVE_INFINITY } : uniform
  if (e.kind === 'load') return e.indices.every((i) => isUniform(i, index)) ? uniform : unknown
  if (e.kind === 'fold') return isUniform(e.length, index) && isUniform(e.value, index) ? uniform : unknown
  if (e.kind === 'element') return unknown
  if (e.kind !== 'call') return uniform
  const strides = e.args.map((arg) => strideOf(arg, index))
  // Runs common to all arguments: those of 8 and of 12 have runs of 4 in common.
  const run = strides.map((each) => each.run).reduce(commonRun, Number.POSITIVE_INFINITY)
  // A value computed from arguments that are constant within a run is constant there too.
  if (strides.every(({ step }) => step === 0)) return { step: 0, run }
  const [a, b, c] = e.args
  const [sa, sb, sc] = strides
  if (e.fn === 'select' && a !== undefined && c !== undefined && sb !== undefined && sb.step === sc?.step)
    return isUniform(a, index) ? { step: sb.step, run } : unknown
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
      return blocked(a, index, numberOf(b), 0)
    case 'shiftRight':
      return blocked(a, index, powerOfTwo(numberOf(b)), 0)
    case 'mod':
      return blocked(a, index, numberOf(b), 1)
    case 'bitAnd': {
      const mask = numberOf(b)
      return blocked(a, index, mask !== undefined && Number.isInteger(Math.log2(mask + 1)) ? mask + 1 : undefined, 1)
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

/**
 * Stride of `c / q` (constant) or `c % q` (moving by one) while c stays within one block of q. Holds for the index itself, whose blocks begin at
 * multiples of q, and for the index plus a multiple of q.
 */
function blocked(a: Expr, index: string, block: number | undefined, step: 0 | 1): Stride {
  return block !== undefined && block > 0 && isAligned(a, index, block) ? { step, run: block } : unknown
}

function isAligned(e: Expr, index: string, block: number): boolean {
  if (e.kind === 'index') return e.name === index
  const [a, b] = e.kind === 'call' && e.fn === 'add' ? e.args : []
  if (a === undefined || b === undefined) return false
  const beside = (part: Expr, rest: Expr): boolean =>
    isAligned(part, index, block) && isUniform(rest, index) && isMultiple(rest, block)
  return beside(a, b) || beside(b, a)
}

/** True if a value is a multiple of a number for all values of its variables. */
export function isMultiple(e: Expr, of: number): boolean {
  const number = numberOf(e)
  if (number !== undefined) return number % of === 0
  if (e.kind !== 'call') return false
  if (e.fn === 'add') return e.args.every((arg) => isMultiple(arg, of))
  return e.fn === 'mul' && e.args.some((arg) => isMultiple(arg, of))
}

const isUniform = (e: Expr, index: string): boolean => {
  const { step, run } = strideOf(e, index)
  return step === 0 && run === Number.POSITIVE_INFINITY
}

export const numberOf = (e: Expr): number | undefined => (e.kind === 'const' && typeof e.value === 'number' ? e.value : undefined)
const powerOfTwo = (bits: number | undefined): number | undefined => (bits === undefined ? undefined : 2 ** bits)
