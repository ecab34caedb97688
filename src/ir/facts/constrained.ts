/** Extents that hold to what facts say of dimensions: drawn ones are set to what they equal, and moved between what bounds them. */
import { evaluateCount, type Facts, longestSequence } from './facts.js'

type Extents = Readonly<Record<string, number>>

/**
 * @param given extents; facts of other dimensions are of no concern
 * @param longest of packed sequences, where facts refer to them
 * @example constrained({ n: 5, k: 3 }, { dims: { n: { equal: ['mul', 2, 'k'] } } }, 1) // { n: 6, k: 3 }
 */
export function constrained(given: Extents, { dims: facts }: Pick<Facts, 'dims'>, longest: number): Record<string, number> {
  let dims: Record<string, number> = { ...given }
  const told = Object.entries(facts).filter(([name]) => dims[name] !== undefined)
  // An extent may follow from one that a later fact gives: as often as there are facts, each is behind what it depends on.
  for (const _ of told) {
    const known = { [longestSequence]: longest, ...dims }
    const next = Object.fromEntries(told.map(([name, fact]) => [name, held(dims[name] ?? 1, fact, known)]))
    if (told.every(([name]) => next[name] === dims[name])) break
    dims = { ...dims, ...next }
  }
  return dims
}

function held(extent: number, { equal, atLeast, atMost, multipleOf = 1 }: Facts['dims'][string], known: Extents): number {
  const of = (count: typeof equal): number | undefined => (count === undefined ? undefined : evaluateCount(count, known))
  const bounded = Math.max(Math.min(extent, of(atMost) ?? extent), of(atLeast) ?? 1)
  return of(equal) ?? Math.ceil(bounded / multipleOf) * multipleOf
}
