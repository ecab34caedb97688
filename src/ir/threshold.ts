/** Reference of a row's threshold in JavaScript, by sorting. native/device/threshold.cuh finds the same key without sorting. */

/** Largest weight of an element. */
export const heaviest = 256

/**
 * The largest key of a row such that the elements with that key or a larger one weigh at least `target` together, and more than 0;
 * -Infinity if all of them weigh less. Weights below 0 and NaN count as 0, those above 256 as 256; a key that is NaN counts as -Infinity.
 */
export function thresholdOf(
  length: number,
  target: number,
  key: (index: number) => number,
  weight: (index: number) => number,
): number {
  const elements = Array.from({ length }, (_, c) => ({ key: key(c), weight: Math.min(weight(c), heaviest) }))
  const counted = elements.filter((element) => element.weight > 0 && !Number.isNaN(element.key))
  counted.sort((a, b) => b.key - a.key)
  let total = 0
  for (const element of counted) {
    total += element.weight
    if (total >= target) return element.key
  }
  return Number.NEGATIVE_INFINITY
}
