/** Suggestions for an unknown name, for the hint of its error. A full list would be too long. */

/** Up to this many names, all of them are shown. */
const few = 12
const shown = 6
/** Smallest similarity of a suggested name. */
const near = 0.45

/** Bigrams of a name, with a mark at either end. */
function pairsOf(name: string): Set<string> {
  const marked = `^${name.toLowerCase()}$`
  return new Set(Array.from({ length: marked.length - 1 }, (_, i) => marked.slice(i, i + 2)))
}

/** Similarity of two names: Dice's coefficient of their bigrams. */
function likeness(a: string, b: string): number {
  const [first, second] = [pairsOf(a), pairsOf(b)]
  return (2 * [...first].filter((pair) => second.has(pair)).length) / (first.size + second.size)
}

/** Names similar to the given one, the nearest first; equally near names keep their order. */
export function nearest(asked: string, names: Iterable<string>): readonly string[] {
  const all = [...new Set(names)].map((name) => ({ name, like: likeness(asked, name) }))
  return all
    .filter(({ like }) => like >= near)
    .sort((a, b) => b.like - a.like)
    .map(({ name }) => name)
}

/**
 * Hint for an unknown name: all names if they are few, otherwise similar ones. If none is similar, the names of the project, if those are
 * few.
 * @param own names of the project, which come first
 */
export function knownHint(asked: string, names: readonly string[], own: readonly string[] = []): string {
  const all = [...new Set([...own, ...names])]
  if (all.length <= few) return `known: ${all.join(', ') || 'none'}`
  const first = nearest(asked, own)
  const like = [...first, ...nearest(asked, names).filter((name) => !first.includes(name))].slice(0, shown)
  if (like.length > 0) return `nearest of ${all.length}: ${like.join(', ')}`
  const mine = [...new Set(own)]
  if (mine.length > 0 && mine.length <= few) return `the project has ${mine.join(', ')}`
  return `none of the ${all.length} known names is similar`
}
