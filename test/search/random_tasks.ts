/** Random graphs with groups at random costs, and all of their covers by enumeration: the reference of searches. */
import type { Choice, Cover, CoverTask } from '../../src/search/cover.js'
import { integer, type Random, random, unit } from '../../src/verify/random.js'

/** Nodes that read earlier ones. */
function randomReads(next: Random, nodes: number): number[][] {
  return Array.from({ length: nodes }, (_, node) =>
    Array.from({ length: node }, (__, before) => before).filter((before) => unit(next) < (before === node - 1 ? 0.6 : 0.25)),
  )
}

/** True if no path leaves the members and comes back. */
function isConvex(reads: readonly (readonly number[])[], members: ReadonlySet<number>): boolean {
  const left = new Set<number>()
  for (const [node, read] of reads.entries()) {
    const after = read.some((each) => left.has(each))
    if (members.has(node)) {
      if (after) return false
    } else if (after || read.some((each) => members.has(each))) left.add(node)
  }
  return true
}

/** A graph of 2 to 9 nodes: each node alone, and random convex groups. */
export function randomTask(seed: string): CoverTask {
  const next = random(seed)
  const count = integer(next, 2, 9)
  const reads = randomReads(next, count)
  const single = Array.from({ length: count }, (_, node): Choice => ({ members: [node], cost: 1 + unit(next) * 4 }))
  const groups = new Map<string, Choice>()
  for (let tried = 0; tried < 40; tried++) {
    const members = single.flatMap((_, node) => (unit(next) < 0.35 ? [node] : []))
    if (members.length < 2 || !isConvex(reads, new Set(members))) continue
    const apart = members.reduce((sum, node) => sum + (single[node]?.cost ?? 0), 0)
    groups.set(members.join(), { members, cost: apart * (0.4 + unit(next) * 0.8) })
  }
  return { reads, choices: [...single, ...groups.values()] }
}

/** True if groups can run one after the other. */
function canRun({ reads, choices }: CoverTask, chosen: readonly number[]): boolean {
  const run = new Set<number>()
  const waiting = new Set(chosen)
  for (let ran = true; ran; ) {
    ran = false
    for (const at of waiting) {
      const members = choices[at]?.members ?? []
      if (!members.every((node) => reads[node]?.every((before) => run.has(before) || members.includes(before)))) continue
      for (const node of members) run.add(node)
      waiting.delete(at)
      ran = true
    }
  }
  return waiting.size === 0
}

/** Every exact cover whose groups can run one after the other, the cheapest first. */
export function allCovers(task: CoverTask): readonly Cover[] {
  const found: Cover[] = []
  const extend = (covered: ReadonlySet<number>, chosen: readonly number[]): void => {
    const open = task.reads.findIndex((_, node) => !covered.has(node))
    if (open === -1) {
      const sorted = [...chosen].sort((a, b) => a - b)
      if (canRun(task, sorted))
        found.push({ chosen: sorted, cost: sorted.reduce((sum, at) => sum + (task.choices[at]?.cost ?? 0), 0) })
      return
    }
    for (const [at, { members }] of task.choices.entries())
      if (members.includes(open) && members.every((node) => !covered.has(node)))
        extend(new Set([...covered, ...members]), [...chosen, at])
  }
  extend(new Set(), [])
  return found.sort((a, b) => a.cost - b.cost)
}
