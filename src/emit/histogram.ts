/**
 * A histogram as CUDA text: the counts of a row are made zero before its pass, and each element adds to the one it falls in.
 * Counts lie where they are stored; the layout of the output says where that is.
 */
import type { Histogram } from '../schedule/normal.js'
import { expressionText, offsetText, type Scope } from './expression.js'

/** Makes the counts of a row zero. */
export const clearLine = (h: Histogram, scope: Scope): string =>
  `heddle::clear_counts(team, ${scope.names.tensor(h.tensor)}, ${expressionText(h.bins, scope)}, ${placeText(h, scope)});`

/** Counts one element. */
export const countLine = (h: Histogram, scope: Scope): string => {
  const value = expressionText(h.value, scope)
  return `heddle::count(${scope.names.tensor(h.tensor)}, ${value}, ${expressionText(h.bins, scope)}, ${placeText(h, scope)});`
}

/** Where the count of a bin lies. */
const placeText = (h: Histogram, scope: Scope): string =>
  `[&](int ${scope.names.value(h.bin)}) -> int64_t { return ${offsetText(h.tensor, h.indices, scope)}; }`
