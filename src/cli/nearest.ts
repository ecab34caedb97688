/** What a name that is not known may have meant, for the hint of its error: a list of everything helps nobody. */

/** Names that are shown as they are where there are no more. */
const few = 12
const shown = 6

/** Pairs of neighbouring letters, with a mark for either end. */
function pairsOf(name: string): Set<string> {
  const marked = `^${name}$`
  return new Set(Array.from({ length: marked.length - 1 }, (_, i) => marked.slice(i, i + 2)))
}

/** The share of their pairs of letters that two names have in common (Dice's coefficient). */
function likeness(a: string, b: string): number {
  const [first, second] = [pairsOf(a), pairsOf(b)]
  return (2 * [...first].filter((pair) => second.has(pair)).length) / (first.size + second.size)
}

/** A hint: all names where they are few, otherwise those most like the one that was asked for, and how many there are. */
export function knownHint(asked: string, names: readonly string[]): string {
  const all = [...new Set(names)]
  if (all.length <= few) return `known: ${all.join(', ') || 'none'}`
  const byLikeness = all.map((name) => ({ name, like: likeness(asked, name) })).sort((a, b) => b.like - a.like)
  const near = byLikeness.slice(0, shown).map(({ name }) => name)
  return `nearest of ${all.length}: ${near.join(', ')}`
}
