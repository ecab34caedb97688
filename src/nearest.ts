/** What a name that is not known may have meant, for the hint of its error: a list of everything helps nobody. */

/** Names that are shown as they are where there are no more. */
const few = 12
const shown = 6
/** Names that have less in common are not meant. */
const near = 0.45

/** Pairs of neighbouring letters, with a mark for either end. */
function pairsOf(name: string): Set<string> {
  const marked = `^${name.toLowerCase()}$`
  return new Set(Array.from({ length: marked.length - 1 }, (_, i) => marked.slice(i, i + 2)))
}

/** The share of their pairs of letters that two names have in common (Dice's coefficient). */
function likeness(a: string, b: string): number {
  const [first, second] = [pairsOf(a), pairsOf(b)]
  return (2 * [...first].filter((pair) => second.has(pair)).length) / (first.size + second.size)
}

/** Those of some names that are like the one asked for, the nearest first; of names that are equally near, in the order given. */
export function nearest(asked: string, names: Iterable<string>): readonly string[] {
  const all = [...new Set(names)].map((name) => ({ name, like: likeness(asked, name) }))
  return all
    .filter(({ like }) => like >= near)
    .sort((a, b) => b.like - a.like)
    .map(({ name }) => name)
}

/**
 * A hint: all names where they are few, otherwise those that are like the one asked for. Nothing that is far from it is shown but names of
 * the project, where there are few of them.
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
  return `none of the ${all.length} names that there are is like it`
}
