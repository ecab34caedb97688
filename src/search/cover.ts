/**
 * The cheapest exact covers of a graph's nodes by groups: each node in one group, and no group waiting for itself. Groups are chosen in an order
 * in which they can run, so a state is the set of nodes that have run. The graph of a layer is nearly a chain and has few such sets. Pure: costs are
 * given, by the cost model or by measurement.
 */

/** A group that a cover may choose. */
export interface Choice {
  /** Places of its nodes. */
  readonly members: readonly number[]
  readonly cost: number
}

export interface CoverTask {
  /** For each node, the places of the nodes whose results it reads. */
  readonly reads: readonly (readonly number[])[]
  readonly choices: readonly Choice[]
}

export interface Cover {
  /** Places of the chosen groups, ascending. */
  readonly chosen: readonly number[]
  readonly cost: number
}

/** Groups of a set of nodes that have run, and their cost. */
type Partial = Cover

/** A choice with its members as a set. */
interface Ready {
  readonly at: number
  readonly cost: number
  /** Number of its members. */
  readonly size: number
  readonly members: bigint
  /** Nodes outside of the group that have to run first. */
  readonly needs: bigint
}

const bit = (at: number): bigint => 1n << BigInt(at)

const setOf = (places: Iterable<number>): bigint => {
  let set = 0n
  for (const at of places) set |= bit(at)
  return set
}

/** Sets of nodes that are looked at by default. */
export const mostSets = 50_000

export const readyGroups = ({ reads, choices }: CoverTask): readonly Ready[] =>
  choices.map(({ members, cost }, at): Ready => {
    const set = setOf(members)
    return { at, cost, size: members.length, members: set, needs: setOf(members.flatMap((member) => reads[member] ?? [])) & ~set }
  })

/**
 * The `count` cheapest covers, the cheapest first; fewer if there are not as many. Ties go to the groups listed first. Deterministic.
 * @param most sets of nodes to look at: beyond it, the sets of lowest cost per node are followed, and covers may be missed
 */
export function bestCovers({ reads, choices }: CoverTask, count: number, most = mostSets): readonly Cover[] {
  const groups = readyGroups({ reads, choices })
  /** By the number of nodes that have run, then by their set. */
  const states = reads.map(() => new Map<bigint, Partial[]>())
  states.push(new Map())
  states[0]?.set(0n, [{ chosen: [], cost: 0 }])
  for (const [size, level] of states.entries()) {
    if (size === reads.length) break
    for (const [run, partials] of narrowed(level, most / reads.length)) {
      for (const { at, cost, size: width, members, needs } of groups) {
        if ((run & members) !== 0n || (needs & ~run) !== 0n) continue
        const next = states[size + width]
        const set = run | members
        const found = next?.get(set) ?? []
        for (const partial of partials) insert(found, partial, at, cost, count)
        next?.set(set, found)
      }
    }
    level.clear()
  }
  const complete = states[reads.length]?.get((1n << BigInt(reads.length)) - 1n) ?? []
  return complete.map(({ chosen }) => ({ chosen, cost: costOf(chosen, choices) }))
}

/** Sum in the order of the groups, so that it does not depend on the order in which they were chosen. */
const costOf = (chosen: readonly number[], choices: readonly Choice[]): number =>
  chosen.reduce((sum, at) => sum + (choices[at]?.cost ?? 0), 0)

/** The sets of nodes to follow: all of them, or those of lowest cost. */
function narrowed(level: ReadonlyMap<bigint, Partial[]>, most: number): Iterable<readonly [bigint, readonly Partial[]]> {
  if (level.size <= most) return level
  return [...level].sort(([, [a]], [, [b]]) => (a?.cost ?? 0) - (b?.cost ?? 0)).slice(0, most)
}

/** Adds a group to a partial cover, among the cheapest `count` distinct ones. Their order is by cost, then by groups. */
function insert(found: Partial[], before: Partial, at: number, added: number, count: number): void {
  const cost = before.cost + added
  const last = found.at(-1)
  if (found.length === count && last !== undefined && cost > last.cost) return
  const chosen = inserted(before.chosen, at)
  if (found.some((other) => isSame(other.chosen, chosen))) return
  const place = found.findIndex((other) => cost < other.cost || (cost === other.cost && isBefore(chosen, other.chosen)))
  found.splice(place === -1 ? found.length : place, 0, { chosen, cost })
  if (found.length > count) found.pop()
}

function inserted(chosen: readonly number[], at: number): readonly number[] {
  const place = chosen.findIndex((other) => other > at)
  return place === -1 ? [...chosen, at] : [...chosen.slice(0, place), at, ...chosen.slice(place)]
}

const isSame = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((each, at) => each === b[at])

function isBefore(a: readonly number[], b: readonly number[]): boolean {
  const place = a.findIndex((each, at) => each !== b[at])
  return place !== -1 && (a[place] ?? 0) < (b[place] ?? 0)
}
