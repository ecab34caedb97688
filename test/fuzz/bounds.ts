/**
 * Bounds of the distance between a kernel and its float64 meaning, all in one place. Each is a promise of float32 arithmetic or of
 * CUDA's functions, and `slack` times that is let pass, for a compiler may compute `x / 3` as `x * (1 / 3)` and add in another order.
 */

/** Half a unit in the last place of float32, relative. */
export const unit = 2 ** -24
/** The largest float32. */
export const largest = (2 - 2 ** -23) * 2 ** 127
/** Half the smallest subnormal of float32: the loss of one rounding near zero. */
export const tiny = 2 ** -149
/** The smallest normal number, below which functions flush to zero. */
export const flushed = 2 ** -126

/** Roundings of one operation: IEEE guarantees one, twice that covers two steps, and twice again makes the order irrelevant. */
export const slack = 4

/**
 * Errors of functions: relative in roundings of float32, and absolute. CUDA's math functions err by 2 roundings (exp, exp2, log, log2, log1p, sin, cos, rsqrt) to 8 (pow);
 * heddle's own by 7 (tanh), by 1e-7 absolute (erf) and 1e-6 absolute (gelu), as native/device/math.cuh promises.
 */
export const functionErrors: Readonly<Record<string, { readonly roundings: number; readonly absolute: number }>> = {
  exp: { roundings: 4, absolute: 0 },
  log: { roundings: 4, absolute: 2 ** -24 },
  exp2: { roundings: 4, absolute: 0 },
  expm1: { roundings: 4, absolute: 0 },
  log2: { roundings: 4, absolute: 2 ** -24 },
  log10: { roundings: 4, absolute: 2 ** -24 },
  log1p: { roundings: 4, absolute: 0 },
  sin: { roundings: 4, absolute: 2 ** -22 },
  cos: { roundings: 4, absolute: 2 ** -22 },
  rsqrt: { roundings: 4, absolute: 0 },
  pow: { roundings: 16, absolute: 0 },
  tanh: { roundings: 8, absolute: flushed },
  erf: { roundings: 4, absolute: 1.5e-7 },
  gelu: { roundings: 16, absolute: 1.2e-6 },
  uniform: { roundings: 2, absolute: 0 },
}

/** Share of an optional rounding to storage of a value in a graph: one, plus the shift of its arithmetic across a half. */
export const roundingShare = 1.1

/** The widest interval of an element that counts as judged, as a share of the largest element. */
export const looseShare = 1 / 8

/**
 * Largest share of elements that a run may leave unjudged for its verdict to count: a tenth, and three standard deviations of a draw of that many
 * subjects, of which each is judged or not. One ill-conditioned op weighs much among thirty.
 * @param subjects ops and graphs of the run
 */
export const mostUnjudged = (subjects: number): number => 0.1 + 3 * Math.sqrt((0.1 * 0.9) / Math.max(1, subjects))
