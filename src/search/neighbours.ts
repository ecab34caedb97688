/**
 * Covers that differ from a given one in one place: a group that it does not have, with the cheapest groups for what it breaks. The descent times
 * them as whole plans, since launches overlap and a sum of groups does not say by how much. Pure.
 */
import { bestCovers } from './cover.js'
import { type Found, type GroupCost, idOf, type Problem, type Variant } from './covers.js'

export interface Neighbour {
  readonly cover: Found
  /** Its cost in relation to that of the given cover. */
  readonly ratio: number
}

/** The neighbours of a cover, those of the lowest cost first. */
export function neighboursOf({ variants }: Problem, base: Found, cost: GroupCost): readonly Neighbour[] {
  const variant = variants[base.variant]
  if (variant === undefined) return []
  const costs = variant.groups.map(({ launches }) => cost(launches))
  const whole = sumOf(costs, base.chosen)
  const found = new Map<string, Neighbour>()
  for (const at of variant.groups.keys()) {
    if (base.chosen.includes(at) || !Number.isFinite(costs[at])) continue
    const chosen = withGroup(variant, base, at, costs)
    if (chosen === undefined) continue
    const cover = { variant: base.variant, chosen, cost: sumOf(costs, chosen) }
    if (!found.has(idOf(cover))) found.set(idOf(cover), { cover, ratio: cover.cost / whole })
  }
  return [...found.values()].sort((a, b) => a.ratio - b.ratio)
}

const sumOf = (costs: readonly number[], chosen: readonly number[]): number =>
  chosen.reduce((sum, at) => sum + (costs[at] ?? Number.POSITIVE_INFINITY), 0)

const membersOf = ({ groups }: Variant, at: number): readonly number[] => groups[at]?.members ?? []

/** The groups of the cheapest cover that keeps all groups of another but those that a group breaks; undefined if there is none. */
function withGroup(variant: Variant, { chosen }: Found, at: number, costs: readonly number[]): readonly number[] | undefined {
  const own = new Set(membersOf(variant, at))
  const broken = chosen.filter((other) => membersOf(variant, other).some((node) => own.has(node)))
  const open = new Set(broken.flatMap((other) => membersOf(variant, other)).filter((node) => !own.has(node)))
  const fitting = variant.groups.flatMap(({ members }, other) => (members.every((node) => open.has(node)) ? [other] : []))
  return runnable(variant, [...chosen.filter((other) => !broken.includes(other)), at, ...fitting], costs)
}

/** The cheapest cover by the given groups alone. */
function runnable({ reads, groups }: Variant, from: readonly number[], costs: readonly number[]): readonly number[] | undefined {
  const usable = from.filter((at) => Number.isFinite(costs[at]))
  const choices = usable.map((at) => ({ members: groups[at]?.members ?? [], cost: costs[at] ?? 0 }))
  const [best] = bestCovers({ reads, choices }, 1)
  return best?.chosen.flatMap((place) => usable[place] ?? []).sort((a, b) => a - b)
}

/** A cover with the changes of several neighbours, of which those that touch the same nodes as an earlier one are left out. */
export function combined({ variants }: Problem, base: Found, changed: readonly Found[], cost: GroupCost): Found | undefined {
  const variant = variants[base.variant]
  if (variant === undefined) return undefined
  const costs = variant.groups.map(({ launches }) => cost(launches))
  const touched = new Set<number>()
  let chosen = base.chosen
  for (const other of changed) {
    const added = other.chosen.filter((at) => !base.chosen.includes(at))
    const removed = base.chosen.filter((at) => !other.chosen.includes(at))
    const nodes = removed.flatMap((at) => membersOf(variant, at))
    if (other.variant !== base.variant || nodes.some((node) => touched.has(node))) continue
    const next = runnable(variant, [...chosen.filter((at) => !removed.includes(at)), ...added], costs)
    if (next === undefined) continue
    for (const node of nodes) touched.add(node)
    chosen = next
  }
  return { variant: base.variant, chosen, cost: sumOf(costs, chosen) }
}
