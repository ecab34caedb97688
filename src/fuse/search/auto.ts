/**
 * Finds a plan by the cost model: from single nodes, again and again the legal merge with the largest gain, until none gains.
 * Runs when CUDA is generated, for plans that a spec declares with `autoPlan`. Deterministic: ties go to the earliest nodes.
 */

import { HeddleError } from '../../errors.js'
import type { Graph, ValueId } from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'
import type { PlanDecl } from '../../lang/plan.js'
import { applyPlan } from '../apply.js'
import type { LayoutsByName } from '../graph/edit.js'
import { type ActiveNode, type Candidate, Candidates, type Defect } from './candidates.js'
import { costDevice, leastGain, type PriceType, type Pricing, priceDims } from './cost.js'
import { type KnownKernels, nameGroups } from './kernel_names.js'
import { attentionSeeds } from './seeds.js'

export interface SearchOptions {
  /** A device of the cost model. */
  readonly device: string
  /** Kernels of the ops the graph uses, by name. */
  readonly ops: ReadonlyMap<string, Kernel>
  /** Dimensions for which plans are priced, besides or instead of those the graph says it is usually run with. */
  readonly dims?: Readonly<Record<string, number>> | undefined
  /** Default f16. */
  readonly dtype?: PriceType | undefined
  readonly packed?: PlanDecl['packed']
  readonly stacked?: PlanDecl['stacked']
  /** Plans the result is never worse than: those of this graph that pack it alike, in floats, without groups of the library. */
  readonly known?: readonly PlanDecl[] | undefined
  /** Layouts that ops of the graph store in and read. */
  readonly layouts?: LayoutsByName | undefined
  /** Kernels whose names are reused where a group derives the same. */
  readonly kernels?: KnownKernels | undefined
}

type Group = Candidate & { readonly kind: 'legal' }

/**
 * The plan the search ends with, or the known plan that the model prefers to it, under the search's name.
 * @throws usage `cost.device`, `graph.dim`, and what packing and stacking refuse
 */
export const searchPlan = (name: string, graph: Graph, options: SearchOptions): PlanDecl => findPlan(name, graph, options).plan

/** A plan that was found, and the groups that a defect kept out of it. */
export interface Found {
  readonly plan: PlanDecl
  readonly defects: readonly Defect[]
}

/** The same with what could not be tried. @throws as `searchPlan` */
export function findPlan(name: string, graph: Graph, options: SearchOptions): Found {
  const { ops, packed, stacked, known = [], kernels, layouts } = options
  const dims = priceDims(graph, packed, options.dims)
  const pricing = { device: costDevice(options.device), dims, dtype: options.dtype ?? 'f16' }
  const candidates = new Candidates(graph, { name, graph: graph.name, packed, stacked, groups: [] }, ops, pricing, layouts)
  const groups = new Search(candidates).run()
  let found: { readonly cost: number; readonly plan: PlanDecl } = {
    cost: total(groups),
    plan: { name, graph: graph.name, packed, stacked, groups: nameGroups(candidates, groups, kernels) },
  }
  for (const plan of known) {
    // A library's product has the price of a generated one: the model gives no reason to choose either.
    if (plan.quantised !== undefined || plan.library !== undefined || plan.graph !== graph.name) continue
    if (JSON.stringify(plan.packed) !== JSON.stringify(packed)) continue
    const cost = planSeconds(graph, plan, ops, pricing, layouts)
    // At the same price a written plan wins: its kernels exist already.
    if (cost < found.cost + leastGain)
      found = { cost, plan: { name, graph: graph.name, packed, stacked: plan.stacked, groups: plan.groups } }
  }
  return { plan: found.plan, defects: candidates.defects }
}

const total = (groups: readonly Group[]): number => groups.reduce((sum, { cost }) => sum + cost.seconds, 0)

/** Predicted seconds of a graph under a plan. @throws usage `plan.*` for a plan that cannot be applied */
export const planSeconds = (
  graph: Graph,
  plan: PlanDecl,
  ops: ReadonlyMap<string, Kernel>,
  pricing: Pricing,
  layouts?: LayoutsByName,
): number =>
  planGroups(new Candidates(graph, plan, ops, pricing, layouts), plan).reduce((sum, { group }) => sum + group.cost.seconds, 0)

/** The steps of a plan: its groups, and the nodes it leaves alone. In graph order of their last nodes. */
export function planGroups(
  candidates: Candidates,
  plan: PlanDecl,
): readonly { readonly group: Group; readonly kernel: string | undefined }[] {
  const fused = plan.groups.flatMap(({ kernel, occurrences }) =>
    occurrences.map((names) => {
      const library = plan.library?.includes(kernel) === true ? [kernel] : []
      const group = library.length > 0 ? candidates.library(names) : candidates.fused(names)
      if (group.kind === 'refused') {
        // Candidates have a working name: the refusal is to tell the group's own.
        const alone = { name: plan.name, graph: plan.graph, library, groups: [{ kernel, occurrences: [names] }] }
        applyPlan(candidates.graph, alone, candidates.ops, candidates.layouts)
        throw group.error
      }
      return { group, kernel }
    }),
  )
  const taken = new Set(fused.flatMap(({ group }) => group.names))
  const alone = candidates.nodes
    .filter(({ name }) => !taken.has(name))
    .map((node) => ({ group: candidates.alone(node), kernel: node.kind === 'op' ? node.op : undefined }))
  const order = new Map(candidates.nodes.map(({ name }, i) => [name, i]))
  const last = ({ names }: Group) => order.get(names.at(-1) ?? '') ?? 0
  return [...fused, ...alone].sort((a, b) => last(a.group) - last(b.group))
}

interface Move {
  readonly parts: readonly Group[]
  readonly whole: Group
  readonly gain: number
}

class Search {
  readonly #candidates: Candidates
  readonly #seeds: readonly Group[]
  /** Groupings that close a cycle, though each group of them is legal. */
  readonly #cyclic = new Set<string>()
  #groups: readonly Group[]

  constructor(candidates: Candidates) {
    this.#candidates = candidates
    this.#groups = candidates.nodes.map((node) => candidates.alone(node))
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
   * Whether a merge could be a kernel that gains: the two touch a common value, or do the same side by side. Matmuls of one kernel share a
   * factor.
   */
  #related(first: Group, second: Group): boolean {
    const [ones, others] = [this.#candidates.find(first.names), this.#candidates.find(second.names)]
    const [factors, more] = [this.#factors(ones), this.#factors(others)]
    if (factors.length > 0 && more.length > 0) return factors.some((id) => more.includes(id))
    const ops = [ones, others].map((nodes) => nodes.map((node) => (node.kind === 'op' ? node.op : node.kind)).join())
    if (ops[0] === ops[1]) return true
    return ones.some((one) =>
      others.some((other) => {
        const reads = this.#candidates.reads(other)
        return (
          this.#candidates.feeds(one, other) ||
          this.#candidates.feeds(other, one) ||
          this.#candidates.reads(one).some((id) => reads.includes(id))
        )
      }),
    )
  }

  /** What the matmuls among nodes multiply. */
  #factors(nodes: readonly ActiveNode[]): readonly ValueId[] {
    return nodes.flatMap((node) => (node.kind === 'matmul' ? [node.a, node.b].map(this.#candidates.source) : []))
  }
}

/** Why groups that are legal one by one cannot be steps of one graph, such as that they wait for each other; undefined when they can. */
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
