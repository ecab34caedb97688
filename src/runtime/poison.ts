/**
 * What memory is filled with before anything is written to it: NaN in every float type and -1 in every signed integer, so that a read
 * before a write shows in the result, and leaves the bounds of a table where it is used as an index.
 */
export const unwritten = 0xff
