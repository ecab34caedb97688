/** Scales of values that are stored as int8, from the magnitude that becomes 127. */

/**
 * Smaller magnitudes are as good as zero: their reciprocals do not fit float32. A site whose largest magnitude is below it is
 * quantised to zeros.
 */
export const negligible = 1e-30

/** What one step of a quantised value is worth: float32. 0 for an amax of 0, whose values are all 0. */
export const stepOf = (amax: number): number => (amax < negligible ? 0 : Math.fround(amax / 127))

/** Quantised steps of a unit: float32, the reciprocal of a step. 0 for an amax of 0, so that everything becomes 0. */
export const stepsPerUnit = (amax: number): number => (amax < negligible ? 0 : Math.fround(127 / amax))
