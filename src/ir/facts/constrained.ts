/** Adjusts drawn extents to the facts of dimensions: to the stated value if there is one, and else into the stated bounds. */
import { evaluateCount, type Facts, longestSequence } from './facts.js'

type Extents = Readonly<Record<string, number>>

/**
 * @param given extents; facts of other dimensions are ignored
 * @param longest length of the longest packed sequence, for facts that refer to it
 * @example constrained({ n: 5, k: 3 }, { dims: { n: { equal: ['mul', 2, 'k'] } } }, 1) // { n: 6, k: 3 }
 */
export function constrained(given: Extents, { dims: facts }: Pick<Facts, 'dims'>, longest: number): Record<string, number> {
  let dims: Record<string, number> = { ...given }
  const stated = Object.entries(facts).filter(([name]) => dims[name] !== undefined)
  // An extent may depend on one that a later fact determines, so iterate until nothing changes, at most once per fact.
  for (const _ of stated) {
    const known = { [longestSequence]: longest, ...dims }
    const next = Object.fromEntries(stated.map(([name, fact]) => [name, clamped(dims[name] ?? 1, fact, known)]))
    if (stated.every(([name]) => next[name] === dims[name])) break
    dims = { ...dims, ...next }
  }
  return dims
}

function clamped(extent: number, { equal, atLeast, atMost, multipleOf = 1 }: Facts['dims'][string], known: Extents): number {
  const of = (count: typeof equal): number | undefined => (count === undefined ? undefined : evaluateCount(count, known))
  const bounded = Math.max(Math.min(extent, of(atMost) ?? extent), of(atLeast) ?? 1)
  return of(equal) ?? Math.ceil(bounded / multipleOf) * multipleOf
}
