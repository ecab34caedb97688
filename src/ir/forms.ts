/**
 * Fast forms of float operations: approximate instructions of a GPU that take a fraction of the exact form's time. The documented error
 * of each decides where a schedule may choose it (src/schedule/normalise/forms.ts), and widens the tolerance of a check (src/ir/facts/error.ts).
 *
 * Errors are those of NVIDIA's PTX ISA (instructions `.approx`) and of `__expf` in the CUDA C++ Programming Guide. A rounding is
 * 2^-24 of the result, and two of them are an ulp.
 */
import type { Expr, ExprOf, Form } from './expr.js'
import { type Intrinsic, type IntrinsicName, intrinsic } from './intrinsics.js'

interface FastForm {
  /** The function in native/device/fast.cuh, by form. */
  readonly cuda: { readonly fast: string; readonly flushed?: string }
  /** The instruction, for readers. */
  readonly instruction: string
  /** Largest error in roundings of the result, for any operands; undefined if it is not relative to the result. */
  readonly most: number | undefined
  /** Error in roundings for an operand of a typical magnitude: of its result, or of 1 if `most` is undefined. */
  readonly typical: (magnitude: number) => number
}

/** Ulps of `__expf(x)`: 2 + |1.173 x|, from the rounding of x log2(e). */
const expRoundings = (size: number): number => 2 * (2 + 1.173 * size)
/** The largest size of an operand whose exponential is a float32 other than 0 and infinity. */
const largestExponent = 104
/** The largest of ten thousand normal numbers, relative to their root mean square. */
const tail = 4

const named = (name: string, instruction: string, most: number | undefined, typical: FastForm['typical']): FastForm => ({
  cuda: { fast: `heddle::fast::${name}` },
  instruction,
  most,
  typical,
})

/** Forms by function. Those of which `most` is undefined are only taken where an op asks for them. */
const fastForms: Partial<Record<IntrinsicName, FastForm>> = {
  div: named('quotient', 'rcp.approx', 4, () => 4),
  sqrt: named('sqrt', 'sqrt.approx', 2, () => 2),
  exp: {
    cuda: { fast: 'heddle::fast::exp', flushed: 'heddle::fast::exp_flushed' },
    instruction: 'ex2.approx',
    most: expRoundings(largestExponent),
    typical: (magnitude) => expRoundings(tail * magnitude),
  },
  // `exp2` and `log2` are exact for powers of two, which the instructions do not guarantee.
  exp2: named('exp2', 'ex2.approx', undefined, () => 4),
  log: named('log', 'lg2.approx', undefined, () => 4),
  log2: named('log2', 'lg2.approx', undefined, () => 4),
  log10: named('log10', 'lg2.approx', undefined, () => 4),
  // 2^-20.5 within a period, and the rounding of the reduced angle.
  sin: named('sin', 'sin.approx', undefined, () => 16),
  cos: named('cos', 'cos.approx', undefined, () => 16),
}

/** The fast form of a function; undefined if it has none. */
export const fastForm = (fn: IntrinsicName): FastForm | undefined => fastForms[fn]

/** True if a call has a fast form. */
export const hasForms = (expr: Expr): expr is ExprOf<'call'> => expr.kind === 'call' && fastForm(expr.fn) !== undefined

/** True for a form with the error of the fast instruction. */
export const isFast = (form: Form | undefined): form is 'fast' | 'flushed' => form === 'fast' || form === 'flushed'

/** The device header of the fast forms. */
const header = 'fast.cuh'

/** CUDA source and header of a call, in its form. */
export function emittedForm({ fn, form }: ExprOf<'call'>): Pick<Intrinsic, 'cuda' | 'symbol' | 'header'> {
  const found = isFast(form) ? fastForm(fn) : undefined
  if (found === undefined) return intrinsic(fn)
  const name = (form === 'flushed' ? found.cuda.flushed : undefined) ?? found.cuda.fast
  return { cuda: (args) => `${name}(${args.join(', ')})`, header }
}
