/**
 * A histogram as CUDA source: the counts of a row are cleared before its pass, and each element increments one. The counts are in the output
 * itself, at the places of its layout.
 */
import type { Histogram } from '../../schedule/normalise/normal.js'
import { expressionText, offsetText } from '../print/expression.js'
import type { PassText } from './construct.js'

export const histogramText: PassText<Histogram> = {
  write(h, { context }) {
    const { names } = context
    const bins = (): string => expressionText(h.bins, context)
    /** Place of a bin's count. */
    const place = (): string =>
      `[&](int ${names.value(h.bin)}) -> int64_t { return ${offsetText(h.tensor, h.indices, context)}; }`
    return {
      declare: () => [`heddle::clear_counts(team, ${names.tensor(h.tensor)}, ${bins()}, ${place()});`],
      element: () => {
        const value = expressionText(h.value, context)
        return [`heddle::count(${names.tensor(h.tensor)}, ${value}, ${bins()}, ${place()});`]
      },
    }
  },
}
