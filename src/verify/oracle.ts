/**
 * Expected results of a kernel in a case: those of its op's body, run by Node, or for a fused kernel, which has no body, those of its
 * interpreted IR.
 */
import type { KernelEntry } from '../emit/manifest/manifest.js'
import { usageError } from '../errors.js'
import type { PlannedKernel } from '../fuse/planned_kernel.js'
import { evaluateKernel, type HostTensor } from '../ir/evaluate.js'
import { evaluateMatmul, type StraySum, withFactors } from '../ir/evaluate_product.js'
import { evaluateAttention, evaluateTemplate } from '../ir/evaluate_template.js'
import { resolveDType } from '../ir/instance.js'
import type { Precision } from '../ir/javascript.js'
import type { DTypeRef, Kernel } from '../ir/kernel.js'
import type { MatmulKernel } from '../ir/product.js'
import { type AttentionKernel, type DecodeAttentionKernel, isTemplate, multipliedTensor } from '../ir/template.js'
import { runOp } from '../lang/run.js'
import type { Op } from '../lang/types.js'
import { roundTo } from '../runtime/numbers.js'
import type { KernelCase } from './cases.js'
import { compare } from './compare.js'
import { type Random, random, uniform } from './random.js'
import { factorsOf, roundedRows } from './rounded_rows.js'
import { strayedRuns, tolerance, unitRoundoff } from './tolerance.js'

export type Tensors = Readonly<Record<string, HostTensor>>

/** Sources of the reference results of kernels. */
export interface Oracle {
  readonly ops: Readonly<Record<string, Op>>
  /** The IR by op, if the front end is available: the oracle of fused kernels, which also distinguishes a wrong lowering from a wrong schedule. */
  readonly kernels?: ReadonlyMap<string, PlannedKernel>
}

/** True if there is a reference for a kernel: its op's body, or the IR of a fused kernel, which has no body. */
export const hasOracle = ({ ops, kernels }: Oracle, { op }: KernelEntry): boolean =>
  Object.hasOwn(ops, op) || kernels?.has(op) === true

/** The expected outputs of a case. @throws usage `verify.oracle` if there is neither a body nor IR of the op */
export function expected({ ops, kernels }: Oracle, { entry, dims, attrs }: KernelCase, inputs: Tensors): Tensors {
  const op = Object.hasOwn(ops, entry.op) ? ops[entry.op] : undefined
  if (op !== undefined) return runOp(op, inputs, { dims, attrs })
  const kernel = kernels?.get(entry.op)
  if (kernel === undefined) throw usageError('verify.oracle', `${entry.key}: there is neither a body nor IR of ${entry.op}`)
  return evaluate(kernel, entry, inputs, dims, attrs)
}

/** Evaluates the IR of a kernel of either kind. */
function evaluate(
  kernel: PlannedKernel,
  entry: KernelEntry,
  inputs: Tensors,
  dims: Readonly<Record<string, number>>,
  attrs: Readonly<Record<string, number>>,
): Tensors {
  if (!isTemplate(kernel)) return evaluateKernel(kernel, inputs, dims, attrs)
  if (kernel.kind !== 'matmul') return evaluateTemplate(kernel, inputs, dims, attrs)
  return evaluateProducts(kernel, entry, inputs, dims, attrs)
}

/** Evaluates a matmul kernel, whose computed operands are first rounded to their storage type. */
function evaluateProducts(
  kernel: MatmulKernel,
  { types }: KernelEntry,
  inputs: Tensors,
  dims: Readonly<Record<string, number>>,
  attrs: Readonly<Record<string, number>>,
  strays?: { readonly sum: StraySum; readonly value: (value: number) => number },
): Tensors {
  const round = (dtype: DTypeRef, values: ArrayLike<number>) => roundTo(resolveDType(dtype, types), values)
  const evaluated = strays && ((prologue: Kernel) => evaluateKernel(prologue, inputs, dims, attrs, 'strayed', strays.value))
  const made = withFactors(kernel, inputs, dims, attrs, round, evaluated)
  return evaluateMatmul(made.kernel, made.inputs, dims, attrs, strays?.sum)
}

/**
 * Alternative results of a one-row matmul: a row that is scaled while its products are summed is not rounded before them
 * (matmul_products_one.cuh).
 */
export function unrounded({ kernels }: Oracle, { entry, dims, attrs }: KernelCase, inputs: Tensors): readonly Tensors[] {
  const kernel = kernels?.get(entry.op)
  if (kernel === undefined || !isTemplate(kernel) || kernel.kind !== 'matmul') return []
  return kernel.a.prologue !== undefined && dims[kernel.m] === 1 ? [evaluateTemplate(kernel, inputs, dims, attrs)] : []
}

/**
 * Results of a case in float32 arithmetic. A rounding to an integer, or a choice of the nearest, flips where a double is very close to a half:
 * such an element may have either value. Undefined if the IR is not available, is a template, or disagrees with the expected results: then
 * the body is the only oracle.
 */
export function inSingle(
  { kernels }: Oracle,
  { entry, dims, attrs }: KernelCase,
  inputs: Tensors,
  wanted: Tensors,
): Tensors | undefined {
  const kernel = kernels?.get(entry.op)
  if (kernel === undefined || isTemplate(kernel)) return undefined
  if (!agree(evaluateKernel(kernel, inputs, dims, attrs), wanted)) return undefined
  return evaluateKernel(kernel, inputs, dims, attrs, 'single')
}

/** Distance between adjacent float32 numbers, at its largest relative to the numbers. */
const lastPlace = 2 * unitRoundoff.f32

/**
 * Possible error of a naive kernel, by output and element: the largest error of several runs with perturbed roundings, of float32 arithmetic and of
 * rows of attention and of matmuls that are computed and then multiplied in storage precision: one near the middle of two of its numbers may be
 * either.
 * If terms are large and cancel, such as a mask of -10000 in a fully masked row, few roundings decide, and a single run may meet no unfavourable
 * one. Undefined if the IR is not available or disagrees.
 */
export function strayedError(
  { kernels }: Oracle,
  { name: seed, entry, dims, attrs }: KernelCase,
  inputs: Tensors,
  wanted: Tensors,
): Readonly<Record<string, Float64Array>> | undefined {
  const kernel = kernels?.get(entry.op)
  if (kernel === undefined) return undefined
  const next = random(`${seed} stray`)
  if (isTemplate(kernel) && kernel.kind === 'matmul') {
    // Roundings of k partial sums, none larger than the sum of all magnitudes, add up like the steps of a random walk.
    const reach = lastPlace * Math.sqrt(dims[kernel.k] ?? 1)
    const sum: StraySum = (total, magnitude) => total + reach * magnitude * uniform(next, -1, 1)
    const strays = { sum, value: (value: number) => (Math.fround(value) === value ? value : strayed(value, next)) }
    const runs = Array.from({ length: strayedRuns }, () => evaluateProducts(kernel, entry, inputs, dims, attrs, strays))
    return largestError(runs, wanted)
  }
  const run = (precision: Precision, stray?: (value: number) => number): Tensors =>
    isTemplate(kernel)
      ? evaluateAttention(kernel, inputs, dims, attrs, precision, stray)
      : evaluateKernel(kernel, inputs, dims, attrs, precision, stray)
  if (!isTemplate(kernel) && !agree(run('double'), wanted)) return undefined
  // Scores are scaled before their maximum is subtracted, so that exponents are of 2: values that float32 holds exactly are rounded as well.
  const stray = (value: number): number => (!isTemplate(kernel) && Math.fround(value) === value ? value : strayed(value, next))
  const runs = [run('single'), ...Array.from({ length: strayedRuns }, () => run('strayed', stray))]
  return largestError(isTemplate(kernel) ? [...runs, ...roundedRuns(kernel, entry, inputs, dims, attrs, next)] : runs, wanted)
}

/** A value that is rounded to float32 one place off at most. */
const strayed = (value: number, next: Random): number => Math.fround(value * (1 + lastPlace * uniform(next, -1, 1)))

/** Results of attention whose computed rows are rounded to storage, each time in another way, by up to twice their bound; none if no row is computed. */
function roundedRuns(
  kernel: AttentionKernel | DecodeAttentionKernel,
  { types }: KernelEntry,
  inputs: Tensors,
  dims: Readonly<Record<string, number>>,
  attrs: Readonly<Record<string, number>>,
  next: Random,
): readonly Tensors[] {
  const rounded = roundedRows(kernel, dims, attrs)
  const multiplied = kernel.tensors.find(({ name }) => name === multipliedTensor(kernel))
  if (rounded === undefined || multiplied === undefined) return []
  const reach = 2 * unitRoundoff[resolveDType(multiplied.dtype, types)]
  const { tensor } = kernel.out
  return Array.from({ length: strayedRuns }, () => {
    const factors = factorsOf(rounded, reach, () => uniform(next, -1, 1))
    const made = evaluateTemplate(rounded.kernel, { ...inputs, ...factors }, dims, attrs)[tensor]
    // A step also stores its key and value, whose only rounding is that of the store.
    return made === undefined ? {} : { [tensor]: made }
  })
}

/** The largest finite error of each element over several runs. */
const largestError = (runs: readonly Tensors[], wanted: Tensors): Readonly<Record<string, Float64Array>> =>
  Object.fromEntries(
    Object.entries(wanted).map(([name, { data }]) => [
      name,
      Float64Array.from(data, (value, i) => {
        const errors = runs.map((found) => Math.abs((found[name]?.data[i] ?? Number.NaN) - value))
        return Math.max(0, ...errors.filter(Number.isFinite))
      }),
    ]),
  )

/** True if the IR yields exactly the expected results. */
function agree(evaluated: Tensors, wanted: Tensors): boolean {
  const exact = tolerance({ dtype: 'f32', class: 'exact' })
  return Object.entries(wanted).every(
    ([tensor, { data }]) => compare(evaluated[tensor]?.data ?? [], data, exact, 'equals').passed,
  )
}

/** The first stage of the pipeline whose result differs from the oracle. */
export function rung({ ops, kernels }: Oracle, { entry, dims, attrs }: KernelCase, inputs: Tensors, wanted: Tensors): string {
  if (!Object.hasOwn(ops, entry.op)) return 'device differs from IR'
  const kernel = kernels?.get(entry.op)
  if (kernel === undefined) return 'device differs from body'
  return agree(evaluate(kernel, entry, inputs, dims, attrs), wanted) ? 'device differs from body and IR' : 'IR differs from body'
}
