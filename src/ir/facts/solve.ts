/**
 * Extents that follow from others by the facts of an op: `n: '2*h'` determines n from h, and h from n. Calls, runs of bodies and bindings
 * of graphs need those of dimensions that no input has.
 */
import { type Count, type ExtentFact, evaluateCount, namesOf } from './facts.js'

type DimFacts = Readonly<Record<string, ExtentFact>>
type Sizes = Readonly<Record<string, number>>

/** Extents of the wanted dimensions that follow from facts. @param known extents and integer attributes */
export function fixedByFacts(facts: DimFacts, known: Sizes, wanted: readonly string[]): Record<string, number> {
  const found: Record<string, number> = {}
  for (let before = -1; before < Object.keys(found).length; ) {
    before = Object.keys(found).length
    for (const [dim, { equal }] of Object.entries(facts)) {
      if (equal === undefined) continue
      const sizes = { ...known, ...found }
      const open = [dim, ...new Set(namesOf(equal))].filter((name) => sizes[name] === undefined)
      const [name] = open
      if (name === undefined || open.length > 1 || !wanted.includes(name)) continue
      const extent = name === dim ? evaluateCount(equal, sizes) : solved(equal, sizes[dim] ?? 0, name, sizes)
      if (extent !== undefined) found[name] = extent
    }
  }
  return found
}

/** Solves a count for one name: the extent at which the count has the value; undefined if no integer does. */
function solved(count: Count, value: number, name: string, known: Sizes): number | undefined {
  if (typeof count === 'string') return count === name && Number.isInteger(value) && value >= 0 ? value : undefined
  if (typeof count === 'number') return undefined
  const [operation, a = 0, b = 0] = count
  const [inner, outer] = namesOf(a).includes(name) ? [a, b] : [b, a]
  const other = evaluateCount(outer, known)
  if (other === undefined || (operation === 'mul' && other === 0)) return undefined
  if (operation === 'add') return solved(inner, value - other, name, known)
  return operation === 'mul' ? solved(inner, value / other, name, known) : undefined
}

/** A dimension that contradicts a fact. */
export interface Contradiction {
  readonly dim: string
  readonly equal: Count
}

/** The first fact about one of these dimensions that the extents violate, or that cannot be satisfied. */
export function contradiction(facts: DimFacts, sizes: Sizes, about: readonly string[]): Contradiction | undefined {
  for (const [dim, { equal }] of Object.entries(facts)) {
    const extent = sizes[dim]
    if (equal === undefined || extent === undefined) continue
    const names = namesOf(equal)
    if (![dim, ...names].some((name) => about.includes(name))) continue
    const open = [...new Set(names)].filter((name) => sizes[name] === undefined)
    const isFulfilled =
      open.length === 0
        ? evaluateCount(equal, sizes) === extent
        : open.length > 1 || solved(equal, extent, open[0] ?? '', sizes) !== undefined
    if (!isFulfilled) return { dim, equal }
  }
  return undefined
}
