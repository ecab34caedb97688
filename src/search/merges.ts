/**
 * The search itself: applies, again and again, the legal merge of groups with the largest gain by the cost model, until none gains.
 * Deterministic: ties go to the earliest nodes.
 */

import { leastGain } from '../cost/device.js'
import { HeddleError } from '../errors.js'
import { applyPlan } from '../fuse/apply.js'
import type { ValueId } from '../ir/graph.js'
import type { ActiveNode, Candidate, Candidates } from './candidates.js'
import { attentionSeeds } from './seeds.js'

/** Nodes that are one kernel, or one node alone. */
export type Group = Candidate & { readonly kind: 'legal' }

/** Predicted seconds of groups, one after the other. */
export const total = (groups: readonly Group[]): number => groups.reduce((sum, { cost }) => sum + cost.seconds, 0)

/** Groups that no merge makes cheaper, starting from single nodes or from given groups. */
export const mergedGroups = (candidates: Candidates, from?: readonly Group[]): readonly Group[] =>
  new Search(candidates, from ?? candidates.nodes.map((node) => candidates.alone(node))).run()

interface Move {
  readonly parts: readonly Group[]
  readonly whole: Group
  readonly gain: number
}

class Search {
  readonly #candidates: Candidates
  readonly #seeds: readonly Group[]
  /** Groupings that contain a cycle, though each group of them is legal. */
  readonly #cyclic = new Set<string>()
  #groups: readonly Group[]

  constructor(candidates: Candidates, from: readonly Group[]) {
    this.#candidates = candidates
    this.#groups = from
    this.#seeds = attentionSeeds(candidates).flatMap((names) => {
      const group = candidates.of(names)
      return group.kind === 'legal' ? [group] : []
    })
  }

  run(): readonly Group[] {
    for (;;) {
      const move = this.#bestMove()
      if (move === undefined) return this.#groups
      const groups = this.#groups.flatMap((group) =>
        group === move.parts[0] ? [move.whole] : move.parts.includes(group) ? [] : [group],
      )
      const names = groups.map((group) => group.names)
      if (cycleOf(this.#candidates, names) === undefined) this.#groups = groups
      else this.#cyclic.add(keyOf(groups))
    }
  }

  #bestMove(): Move | undefined {
    let best: Move | undefined
    const consider = (parts: readonly Group[], whole: Candidate): void => {
      if (whole.kind === 'refused') return
      const gain = total(parts) - whole.cost.seconds
      if (gain <= (best?.gain ?? 0) + leastGain) return
      const groups = this.#groups
        .map((group) => (group === parts[0] ? whole : group))
        .filter((group) => !parts.slice(1).includes(group))
      if (!this.#cyclic.has(keyOf(groups))) best = { parts, whole, gain }
    }
    for (const seed of this.#seeds) {
      const parts = this.#groups.filter(({ names }) => names.some((name) => seed.names.includes(name)))
      const covered = parts.every(({ names }) => names.every((name) => seed.names.includes(name)))
      if (covered && parts.length > 1) consider(parts, seed)
    }
    this.#groups.forEach((first, i) => {
      for (const second of this.#groups.slice(i + 1)) {
        if (this.#related(first, second)) consider([first, second], this.#candidates.of([...first.names, ...second.names]))
      }
    })
    return best
  }

  /**
   * True if a merge could be a kernel that gains: the two read a common value, or apply the same computation to different tensors. Matmuls of one
   * kernel share a factor, or one feeds the other. Every pair of steps of which one feeds the other is tried: `plan show` reports a legal merge of
   * them as left by the plan.
   */
  #related(first: Group, second: Group): boolean {
    const [ones, others] = [this.#candidates.find(first.names), this.#candidates.find(second.names)]
    const [factors, more] = [this.#factors(ones), this.#factors(others)]
    const feeds = (from: readonly ActiveNode[], to: readonly ActiveNode[]): boolean =>
      from.some((one) => to.some((other) => this.#candidates.feeds(one, other)))
    if (feeds(ones, others) || feeds(others, ones)) return true
    if (factors.length > 0 && more.length > 0) return factors.some((id) => more.includes(id))
    const ops = [ones, others].map((nodes) => nodes.map((node) => (node.kind === 'op' ? node.op : node.kind)).join())
    if (ops[0] === ops[1]) return true
    return ones.some((one) =>
      others.some((other) => {
        const reads = this.#candidates.reads(other)
        return this.#candidates.reads(one).some((id) => reads.includes(id))
      }),
    )
  }

  /** Factors of the matmuls among nodes. */
  #factors(nodes: readonly ActiveNode[]): readonly ValueId[] {
    return nodes.flatMap((node) => (node.kind === 'matmul' ? [node.a, node.b].map(this.#candidates.source) : []))
  }
}

/** Reason why groups that are legal one by one cannot be steps of one graph, such as a cycle; undefined if they can. */
export function cycleOf({ graph, ops, layouts }: Candidates, groups: readonly (readonly string[])[]): HeddleError | undefined {
  const merged = groups.filter((names) => names.length > 1)
  const decl = {
    name: 'search',
    graph: graph.name,
    groups: merged.map((names, i) => ({ kernel: `group${i}`, occurrences: [names] })),
  }
  try {
    applyPlan(graph, decl, ops, layouts)
    return undefined
  } catch (error) {
    if (error instanceof HeddleError) return error
    throw error
  }
}

const keyOf = (groups: readonly Group[]): string => groups.map(({ names }) => names.join()).join(' ')
