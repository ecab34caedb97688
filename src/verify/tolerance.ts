/**
 * The single table of tolerances. Every comparison of the project uses it, so that each bound is defined once, with its reason.
 *
 * The yardstick is a naive implementation of the same storage type: inputs rounded to storage, float32 arithmetic in loop
 * order, one rounding on the store. A correct store rounds no worse than that, so storage error counts once; arithmetic
 * may have twice the error of the naive one. Expected values are computed in double precision from inputs that are already
 * rounded to their storage type.
 *
 * Every folder may import this file, which imports only types.
 */
import type { DType } from '../ir/dtype.js'
import type { Size } from '../ir/facts/facts.js'

/**
 * `exact`: small integers, or data that is only moved. `elementwise`: a few float operations per element, including division and
 * square root. `transcendental`: library functions. `reduction`: statistics over a row of `length` elements.
 * `matmul`: dot products of `length` terms. `attention`: averages whose weights come from dot products of `length` terms. `model`: a
 * whole encoder of `length` layers.
 */
export type OpClass = 'exact' | 'elementwise' | 'transcendental' | 'reduction' | 'matmul' | 'attention' | 'model'

/** An element passes when `|actual - expected| <= absolute + relative * |expected|`. */
export interface Tolerance {
  readonly absolute: number
  readonly relative: number
}

/** Relative error of one rounding to nearest: half the distance between 1 and the next number. Integers are exact. */
export const unitRoundoff: Readonly<Record<DType, number>> = {
  f32: 2 ** -24,
  f16: 2 ** -11,
  bf16: 2 ** -8,
  i32: 0,
  i8: 0,
  u8: 0,
  f8e4m3: 2 ** -4,
  f8e5m2: 2 ** -3,
  i16: 0,
  u32: 0,
  i64: 0,
  bool: 0,
}

/** Half the smallest subnormal: the largest error of a store near zero. */
const underflow: Readonly<Record<DType, number>> = {
  f32: 2 ** -150,
  f16: 2 ** -25,
  bf16: 2 ** -134,
  i32: 0,
  i8: 0,
  u8: 0,
  f8e4m3: 2 ** -10,
  f8e5m2: 2 ** -17,
  i16: 0,
  u32: 0,
  i64: 0,
  bool: 0,
}

/** Error of a naive float32 computation in units of 2^-24, relative to the largest term. */
const arithmeticError: Readonly<Record<Exclude<OpClass, 'exact' | 'model'>, (length: number) => number>> = {
  // Up to four roundings between loads and store.
  elementwise: () => 4,
  // CUDA states at most 4 ulp (8 roundings) for the functions in use; two of them are chained at most. The fitted ones of
  // native/device/math.cuh err by 1e-7 (erf) and 8e-7 (gelu, 14 roundings) absolutely.
  transcendental: () => 16,
  // A running sum of n terms of one sign errs by sqrt(n) roundings on average; 4 covers its tail, 16 the functions around it.
  reduction: (n) => 16 + 4 * Math.sqrt(n),
  // The partial sums of k independent terms grow as sqrt(k), so their roundings add up to k / sqrt(6); 2 is the tail of that.
  matmul: (k) => 2 * k,
  // A score's error is the relative error of its weight; the functions around it are those of a softmax.
  attention: (k) => 16 + 2 * k,
}

const float32 = unitRoundoff.f32

/** Distance at which two sides of a monoid's law count as equal, relative to the largest field: 16 roundings of float32, which a device makes in any case. */
export const lawError = 16 * float32

/** Distance of sums of doubles in different orders, relative to 1 and their size: a kernel's reference result and that of its nodes. */
export const reordered = 1e-9

/**
 * Tolerance of quantised results that are not exact: a value within its arithmetic error of a half may round to either side. It is one
 * step for any reduction length, so that a case whose results span many steps is checked tightly.
 */
const quantisationStep: Tolerance = { absolute: 1, relative: 0 }

export interface ToleranceQuery {
  /** Storage type of the output. */
  readonly dtype: DType
  readonly class: OpClass
  /** Reduction length; the number of layers of a model. */
  readonly length?: number
  /**
   * Magnitude of the largest terms that cancel or add up; 0 if nothing cancels. For a model, the root mean square of the
   * expected values.
   */
  readonly scale?: number
  /** Number of times that this magnitude grows with the root of the length, as sums of random terms do: 0 by default. */
  readonly roots?: number
  /**
   * Attention with queries or keys that are rounded to storage in between: change of a score of `length` terms when each of them changes by its own
   * size. Absent if both lie in memory.
   */
  readonly rounded?: Omit<Size, 'degree'> | undefined
}

/**
 * Factor from a rounding of a score's terms to a result. A rounding moves a random number by 0.43 of its bound, and a score occasionally by
 * four times as much: 1.7. A weight changes by at most a quarter of that, and moves a result from one value to another, 7 apart.
 */
const scoreRounding = 3

/** Number of terms whose sum has four standard deviations equal to the largest product of four random numbers. */
const fewTerms = 16

/** Change of a result by roundings of the terms of scores. */
function scoreError(length: number, rounded: ToleranceQuery['rounded']): number {
  if (rounded === undefined) return 0
  const terms = rounded.roots > 0 ? Math.max(length, fewTerms) : length
  return scoreRounding * rounded.rms * terms ** (rounded.roots / 2)
}

/** Tolerance of one output element. */
export function tolerance({ dtype, class: opClass, length = 1, scale = 1, roots = 0, rounded }: ToleranceQuery): Tolerance {
  if (opClass === 'exact') return { absolute: 0, relative: 0 }
  if (opClass === 'model') return { absolute: modelTolerance(dtype, length, scale).absolute, relative: 0 }
  if (dtype === 'i8') return quantisationStep
  const arithmetic = 2 * arithmeticError[opClass](length) * float32
  // Tensor cores take the weights in storage precision: an average of values up to 4 then errs by at most half a rounding of each.
  const weights = opClass === 'attention' ? 2 * unitRoundoff[dtype] : 0
  const scores = scoreError(length, rounded) * unitRoundoff[dtype]
  return {
    absolute: (arithmetic + weights) * scale * length ** (roots / 2) + scores + underflow[dtype],
    relative: unitRoundoff[dtype] + arithmetic,
  }
}

export interface ModelTolerance {
  /** Largest error of one logit or hidden element. */
  readonly absolute: number
  /** Norm of the error over the norm of the expected values. */
  readonly relativeL2: number
  /** Share of tokens whose label may differ from the float32 label. */
  readonly labelsDiffer: number
  /** Distance of the F1 score from the float32 score. */
  readonly f1: number
}

/**
 * Naive encoders, measured against float64 by test/peers/naive_error.py: relative L2 error of the last hidden state in
 * roundings of storage times sqrt(layers). f16 and bf16: 0.75 on `kjv-punct-bert` (4 layers), 0.98 on a BERT-base with random
 * weights (12 layers); f32, where arithmetic dominates: 2.4 to 2.8, and 2.7 to 5.7. Labels that flipped on the former's golden batch: none, 1 and 3 of 558.
 * F1 over its test set, where one flipped label moves the score by 5e-4: no distance in f16; in bf16 six naive encoders that
 * differ only in which intermediates they store lie 2e-4 to 1.24e-3 away, the farthest being the one that stores them all.
 */
const naiveModel: Readonly<Record<'f32' | 'f16' | 'bf16', { perLayer: number; labelsDiffer: number; f1: number }>> = {
  f32: { perLayer: 5.7, labelsDiffer: 0, f1: 0 },
  f16: { perLayer: 0.75, labelsDiffer: 1 / 558, f1: 0 },
  bf16: { perLayer: 0.75, labelsDiffer: 3 / 558, f1: 1.24e-3 },
}

/** The largest of some 10^5 errors was 4 to 10 times their root mean square; among 10^7 the tail is a fifth longer. */
const tail = 12

/** Distance of F1 that is always allowed: two labels of the test set, the guarantee for float32. */
const f1Promise = 1e-3

/** Guarantee of float32 for every logit and hidden element. */
const float32Promise = 1e-4

/**
 * Bounds for an encoder of `layers` layers whose storage type is `dtype`: twice the naive error. `scale` is the root mean
 * square of the expected values. Integer types run no model: their bounds are 0.
 */
export function modelTolerance(dtype: DType, layers: number, scale = 1): ModelTolerance {
  if (dtype !== 'f32' && dtype !== 'f16' && dtype !== 'bf16') return { absolute: 0, relativeL2: 0, labelsDiffer: 0, f1: 0 }
  const naive = naiveModel[dtype]
  const relativeL2 = 2 * naive.perLayer * unitRoundoff[dtype] * Math.sqrt(layers)
  return {
    absolute: dtype === 'f32' ? float32Promise : tail * relativeL2 * scale,
    relativeL2,
    labelsDiffer: 2 * naive.labelsDiffer,
    f1: Math.max(f1Promise, 2 * naive.f1),
  }
}

/**
 * Tolerance of a graph of `steps` kernels that each store their results: none has a larger error than a layer of a model. `scale` is the root
 * mean square of the expected values.
 */
export function graphTolerance(dtype: DType, steps: number, scale: number): Tolerance {
  if (dtype !== 'f32' && dtype !== 'f16' && dtype !== 'bf16')
    return dtype === 'i8' ? quantisationStep : { absolute: 0, relative: 0 }
  const relativeL2 = 2 * naiveModel[dtype].perLayer * unitRoundoff[dtype] * Math.sqrt(steps)
  return { absolute: tail * relativeL2 * scale, relative: 0 }
}

/**
 * Allowed drop of the F1 score of a quantised token classifier from that of float32, with scales from 64 sentences, by the type that its layers
 * pass on. FasterTransformer v3.0 states 0.005 and 0.011 for SQuAD after calibration; a small model on a small set gets twice that.
 */
export const quantisedF1Drop = { float: 0.01, int8: 0.02 } as const

/** Tolerance between two results that are each within a tolerance of the exact one: twice that. */
export const betweenResults = ({ absolute, relative }: Tolerance): Tolerance => ({
  absolute: 2 * absolute,
  relative: 2 * relative,
})

/**
 * Tolerance of a result with one part that may be rounded to storage in between: cuBLASLt (13.0 in f16 and bf16) stores matmul result + residual
 * before it adds a bias in some of its kernels, as the steps of an unfused graph store each of their results. One rounding, at the size of that part.
 */
export const withStoredPart = ({ absolute, relative }: Tolerance, dtype: DType, part: number): Tolerance => ({
  absolute: absolute + unitRoundoff[dtype] * Math.abs(part) + underflow[dtype],
  relative,
})

/**
 * Number of float32 runs of a case whose roundings are perturbed by up to one place, twice their bound. Over these runs, the largest error of an
 * element is at least half of that of a correct implementation, except for one in 10^6 of the elements that few roundings decide.
 */
export const strayedRuns = 16

/** Tolerance with the measured error of a naive float32 implementation: arithmetic may have twice that error. */
export const withNaiveError = ({ absolute, relative }: Tolerance, error: number): Tolerance => ({
  absolute: absolute + 2 * error,
  relative,
})

/** Quantile of the normal distribution at 0.999: the statistic of correct draws exceeds the bound once in a thousand times. */
export const drawQuantile = 3.090232306167813

/**
 * Beams in float32 against goldens. `absolute`: the sum of the log-probabilities of a text of up to 20 tokens, each with the error guaranteed for a
 * logit. `separated`: hypotheses closer than this may swap ranks; goldens of five decimals are themselves uncertain.
 */
export const hypothesisTolerance = { absolute: 20 * float32Promise, separated: 1e-3 } as const

/**
 * Logits of small language models in float32 against another float32 implementation, relative to 1 + the largest: sums in other orders differ by a
 * few 1e-6 of it after a few layers. Two tokens whose logits are closer than `separated` may swap ranks.
 */
export const logitTolerance = { relative: 1e-4, separated: 1e-3 } as const

/**
 * Allowed change of the mean negative log-likelihood of a text by int8, relative to float32, in nats: with int8 weights alone, with activations whose
 * rows are quantised as well, or with caches of keys and values. Without smoothing, channels with outliers cost at least `outliers`.
 */
export const int8Likelihood = { weights: 0.005, activations: 0.02, caches: 0.02, outliers: 0.05 } as const

/**
 * Logits of small language models over caches in int8 against float32, relative to 1 + the largest: an element errs by half a step, 1/254 of its
 * head's largest, and attention averages the errors of positions. Two tokens closer than `separated` may swap ranks.
 */
export const int8CacheTolerance = { relative: 0.03, separated: 0.2 } as const

/**
 * An INT8 encoder on two devices: a value halfway between two steps may round differently on each, and later layers propagate that. Logits
 * relative to the largest (0.013 on an H200 against the CPU device, four layers), and the share of labels that may differ (none there).
 */
export const int8BetweenDevices = { relative: 0.03, labelsDiffer: 0.01 } as const

/** Absolute distance of sums of some doubles around one in different orders. */
export const resummed = 5e-12
