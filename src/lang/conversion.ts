/** Declaration of conversions between storage forms of a value, for programs whose graphs store it differently. */
import type { ScaleForm } from '../ir/graph.js'
import type { Op } from './types.js'

/** An op that takes one tensor, in a layout or as int8, and returns the same elements in another storage form, according to its signature. */
export interface Conversion {
  readonly op: Op
  /** Attributes of the op that are scales of the value: `inverse` is 127 / amax, `step` is amax / 127. */
  readonly scales?: Readonly<Record<string, ScaleForm>>
}
