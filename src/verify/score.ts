/** Labels and scores of token classifiers, as the labelled test sets define them. */

/** Index of the largest value; the lowest among equals. */
export function argmax(values: ArrayLike<number>): number {
  let best = 0
  for (let i = 1; i < values.length; i++) if ((values[i] ?? Number.NaN) > (values[best] ?? Number.NaN)) best = i
  return best
}

/** Label of tokens that are not scored. */
export const ignoredLabel = -100

/** Micro-averaged F1 over all labels but 0, the label of "nothing here". Ignored tokens do not count. */
export function microF1(predicted: readonly number[], expected: readonly number[]): number {
  let hits = 0
  let claims = 0
  let wanted = 0
  for (const [i, label] of expected.entries()) {
    if (label === ignoredLabel) continue
    const guess = predicted[i] ?? 0
    if (guess > 0) claims++
    if (label > 0) wanted++
    if (guess > 0 && guess === label) hits++
  }
  return claims + wanted === 0 ? 1 : (2 * hits) / (claims + wanted)
}
