/**
 * A histogram as CUDA text: the counts of a row are made zero before its pass, and each element adds to the one it falls in.
 * Counts lie where they are stored; the layout of the output says where that is.
 */
import type { Histogram } from '../../schedule/normal.js'
import { expressionText, offsetText } from '../expression.js'
import type { PassText } from './construct.js'

export const histogramText: PassText<Histogram> = {
  write(h, { context }) {
    const { names } = context
    const bins = (): string => expressionText(h.bins, context)
    /** Where the count of a bin lies. */
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
