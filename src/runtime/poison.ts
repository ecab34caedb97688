/**
 * Fill byte of memory before the first write: NaN in every float type and -1 in every signed integer. A read before a write shows in the
 * result, and is out of bounds if used as an index.
 */
export const unwritten = 0xff
