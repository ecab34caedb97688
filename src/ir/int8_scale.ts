/** Scales of int8 values, from the magnitude that maps to 127. */

/**
 * Magnitudes below this count as zero, since their reciprocals do not fit float32. A site whose largest magnitude is below it is
 * quantised to zeros.
 */
export const negligible = 1e-30

/** Scale of a quantised value (the value of one integer step), in float32. 0 for an amax of 0, whose values are all 0. */
export const stepOf = (amax: number): number => (amax < negligible ? 0 : Math.fround(amax / 127))

/** Inverse scale, in float32. 0 for an amax of 0, so that everything becomes 0. */
export const stepsPerUnit = (amax: number): number => (amax < negligible ? 0 : Math.fround(127 / amax))
