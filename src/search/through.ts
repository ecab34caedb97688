/**
 * Cost of the cheapest cover through each group: the price of choosing that group. It says how far a group is from any cover that could be the best,
 * which orders what a search measures. Walks the sets of nodes of `bestCovers` forwards, and their steps backwards. Pure.
 */
import { type CoverTask, mostSets, readyGroups } from './cover.js'

/** A set of nodes that have run, its least cost, and the least cost of all that is left. */
interface State {
  readonly run: bigint
  cost: number
  left: number
}

interface Step {
  readonly from: State
  readonly at: number
  readonly to: State
}

/** For each choice, the cost of the cheapest cover that contains it; infinite if there is none. */
export function throughCosts({ reads, choices }: CoverTask, most = mostSets): readonly number[] {
  const groups = readyGroups({ reads, choices })
  const levels = reads.map(() => new Map<bigint, State>())
  levels.push(new Map())
  levels[0]?.set(0n, { run: 0n, cost: 0, left: Number.POSITIVE_INFINITY })
  const steps: Step[] = []
  for (const [size, level] of levels.entries()) {
    for (const from of cheapest(level, most / Math.max(1, reads.length))) {
      for (const { at, cost, size: width, members, needs } of groups) {
        if ((from.run & members) !== 0n || (needs & ~from.run) !== 0n) continue
        const next = levels[size + width]
        const run = from.run | members
        const to = next?.get(run) ?? { run, cost: Number.POSITIVE_INFINITY, left: Number.POSITIVE_INFINITY }
        to.cost = Math.min(to.cost, from.cost + cost)
        next?.set(run, to)
        steps.push({ from, at, to })
      }
    }
  }
  const whole = levels[reads.length]?.get((1n << BigInt(reads.length)) - 1n)
  const through = choices.map(() => Number.POSITIVE_INFINITY)
  if (whole === undefined) return through
  whole.left = 0
  for (const { from, at, to } of steps.toReversed()) {
    const cost = (choices[at]?.cost ?? 0) + to.left
    from.left = Math.min(from.left, cost)
    through[at] = Math.min(through[at] ?? 0, from.cost + cost)
  }
  return through
}

/** The states to follow: all of them, or those of lowest cost. */
function cheapest(level: ReadonlyMap<bigint, State>, most: number): Iterable<State> {
  if (level.size <= most) return level.values()
  return [...level.values()].sort((a, b) => a.cost - b.cost).slice(0, most)
}
