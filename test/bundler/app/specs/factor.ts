/** A number of an op. */
export const factor = 3
