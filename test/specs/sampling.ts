/** Helpers of sampling tests: numbers for requests, and the token that a number draws. */

/** The token a random number draws: the first at which the sum of probabilities exceeds it. */
export function wordAt(chances: readonly number[], u: number): number {
  let sum = 0
  return chances.findIndex((chance) => {
    sum += chance
    return sum > u
  })
}

/** Numbers in [0, 1) from a seed. */
export function numbers(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}
