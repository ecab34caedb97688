/** Declaring a step between two ways of holding a value, for where a program's graphs hold it differently. */
import type { ScaleForm } from '../ir/graph.js'
import type { Op } from './types.js'

/** An op that takes one tensor, in a layout or as int8, and returns the same elements held otherwise. Its signature says how. */
export interface Conversion {
  readonly op: Op
  /** Its attributes that are scales of the value: `inverse` is 127 / amax, `step` amax / 127. */
  readonly scales?: Readonly<Record<string, ScaleForm>>
}
