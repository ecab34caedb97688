/**
 * Statistics of an activation for calibration: its largest magnitude, and the distribution of its magnitudes. Activations stay on the device; only
 * these statistics leave it.
 */
import { abs, histogram, max, minimum, op, row, sum, tensor, toInt } from 'heddle'

/** Replacement for a magnitude that is not finite: larger than any that can be calibrated. */
const notFinite = 3e38

/** Magnitude of a value; `notFinite` for NaN and infinity, so that a maximum shows them. */
const magnitude = (x: number): number => {
  const finite = abs(x) < notFinite
  return finite ? abs(x) : notFinite
}

/** The largest magnitude of each row; at least 3e38 where a value is not finite. */
export const absMax = op('abs_max', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('f32', 'm') },
  body:
    ({ x }, { n }) =>
    (m) => ({ y: max(n, (c) => magnitude(x(m, c))) }),
})

/**
 * Histogram of the magnitudes of each row, in bins of width 1 / `scale`; magnitudes beyond the last bin count in the last. With a scale of bins /
 * amax the bins span [0, amax]; with a scale of 0 all count in the first.
 */
export const magnitudeHistogram = op('magnitude_histogram', {
  dims: ['m', 'n', 'bins'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { counts: tensor('i32', 'm bins') },
  attrs: { scale: 16 },
  facts: { bins: 40 },
  body:
    ({ x }, { n, bins, scale }) =>
    (m) => ({ counts: histogram(bins, n, (c) => toInt(minimum(magnitude(x(m, c)) * scale, bins - 1))) }),
})

/** Sums of integers over the rows, column by column. */
export const columnSum = op('column_sum', {
  dims: ['m', 'n'],
  inputs: { x: tensor('i32', 'm n') },
  outputs: { y: tensor('i32', 'n') },
  facts: { x: { from: 0, to: 1000 } },
  body:
    ({ x }, { m, n }) =>
    () => ({ y: row(n, (c) => sum(m, (r) => x(r, c))) }),
})

/** The largest magnitude of each column; at least 3e38 where a value is not finite. */
export const channelMax = op('channel_max', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('f32', 'n') },
  body:
    ({ x }, { m, n }) =>
    () => ({ y: row(n, (c) => max(m, (r) => magnitude(x(r, c)))) }),
})
