/** Groups of interleaved accesses of a pass: rows that one load brings, and stores of one chunk. Used by lowering and by prices. */
import type { Interleaved, LoopStore } from '../schedule/normalise/normal.js'
import { hashOf } from '../schedule/normalise/rewrite.js'
import type { Loaded } from './spans.js'

type Grouped<T> = T & { readonly interleaved: Interleaved }

const isGrouped = <T extends { readonly interleaved?: Interleaved }>(each: T): each is Grouped<T> =>
  each.interleaved !== undefined

function groups<T extends { readonly interleaved?: Interleaved }>(
  all: readonly T[],
  tensorOf: (each: T) => string,
): readonly (readonly [Grouped<T>, ...Grouped<T>[]])[] {
  const found = new Map<string, [Grouped<T>, ...Grouped<T>[]]>()
  for (const each of all.filter(isGrouped)) {
    const key = [tensorOf(each), ...each.interleaved.first.map(hashOf)].join(' ')
    const known = found.get(key)
    if (known === undefined) found.set(key, [each])
    else known.push(each)
  }
  return [...found.values()]
}

/** Rows that are members of the same groups of elements. */
export const loadedGroups = (rows: readonly Loaded[]) => groups(rows, ({ load }) => load.tensor)

/** Stores of all members of groups. */
export const storedGroups = (stores: readonly LoopStore[]) => groups(stores, ({ tensor }) => tensor)
