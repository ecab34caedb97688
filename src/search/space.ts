/**
 * The groups that a search by measuring chooses from: every legal group that merges reach from single nodes, over an edge, a shared factor or
 * equal ops, the groups around attention, and a matmul with its epilogue by the library. Each is derived and priced once.
 */
import type { HeddleError } from '../errors.js'
import type { ValueId } from '../ir/graph.js'
import { isTemplate } from '../ir/template.js'
import type { ActiveNode, Candidates } from './candidates.js'
import type { CoverTask } from './cover.js'
import type { Group } from './merges.js'
import { attentionSeeds } from './seeds.js'

/** Classes of launches whose predictions are wrong alike. */
export type Kind = 'row' | 'matmul' | 'library' | 'attention' | 'decode attention'

/** A group in one form. */
export interface SpaceGroup {
  readonly group: Group
  readonly form: 'generated' | 'library'
  readonly kind: Kind
}

export interface Space {
  readonly candidates: Candidates
  readonly groups: readonly SpaceGroup[]
  /** Nodes that were tried together and cannot be one kernel, with the reason. */
  readonly refused: readonly { readonly names: readonly string[]; readonly error: HeddleError }[]
  /** True if every merge was tried. */
  readonly complete: boolean
}

export interface SpaceOptions {
  /** Most groups that are derived, legal or not. */
  readonly most?: number
  /** Price of a merge in relation to that of its parts beyond which it is left out, with all that contain it. */
  readonly worst?: number
  readonly signal?: AbortSignal | undefined
}

/** @throws the signal's reason */
export function spaceOf(candidates: Candidates, { most = 1500, worst = 1.5, signal }: SpaceOptions = {}): Space {
  const refused: { names: readonly string[]; error: HeddleError }[] = []
  const tried = new Set<string>()
  const known: Group[] = candidates.nodes.map((node) => candidates.alone(node))
  const related = relatedOf(candidates)
  const consider = (names: readonly string[], apart: number): void => {
    const key = candidates
      .find(names)
      .map(({ name }) => name)
      .join()
    if (tried.has(key)) return
    tried.add(key)
    const group = candidates.fused(names)
    if (group.kind === 'refused') refused.push(group)
    else if (group.cost.seconds <= worst * apart) known.push(group)
  }
  for (const seed of attentionSeeds(candidates)) consider(seed, Number.POSITIVE_INFINITY)
  let complete = true
  for (let i = 0; i < known.length && complete; i++) {
    signal?.throwIfAborted()
    for (const other of known.slice(0, i)) {
      const group = known[i]
      if (group === undefined || !related(group, other)) continue
      complete &&= tried.size < most
      if (complete) consider([...other.names, ...group.names], other.cost.seconds + group.cost.seconds)
    }
  }
  const groups = known.map((group): SpaceGroup => ({ group, form: formOf(group), kind: kindOf(group) }))
  return { candidates, groups: [...groups, ...otherForms(candidates, known)], refused, complete }
}

const formOf = ({ kernel }: Group): SpaceGroup['form'] => (kernel === undefined ? 'library' : 'generated')

export const kindOf = ({ kernel }: Pick<Group, 'kernel'>): Kind =>
  kernel === undefined ? 'library' : isTemplate(kernel) ? kernel.kind : 'row'

/** Matmuls in the form that they do not have alone: generated ones of a single node, and by the library with an epilogue. */
function otherForms(candidates: Candidates, known: readonly Group[]): readonly SpaceGroup[] {
  return known.flatMap((group): SpaceGroup[] => {
    const matmuls = candidates.find(group.names).filter(({ kind }) => kind === 'matmul').length
    if (matmuls !== 1 || group.names.length > mostEpilogue) return []
    const other = group.kernel === undefined ? candidates.fused(group.names) : candidates.library(group.names)
    return other.kind === 'legal' && isOneLaunch(other) ? [{ group: other, form: formOf(other), kind: kindOf(other) }] : []
  })
}

/** False for a group of the library that becomes several nodes. */
const isOneLaunch = ({ kernel, launch: { node } }: Group): boolean =>
  kernel !== undefined || (node.kind === 'matmul' && node.epilogue !== undefined)

/** A matmul with a bias and a residual or an activation is all that the library computes. */
const mostEpilogue = 3

/**
 * A test of two groups that have no node in common: true if one reads a result of the other, their matmuls share a factor, or their ops are equal.
 */
function relatedOf(candidates: Candidates): (one: Group, other: Group) => boolean {
  interface Facts {
    readonly names: ReadonlySet<string>
    readonly made: ReadonlySet<ValueId>
    readonly read: ReadonlySet<ValueId>
    readonly factors: ReadonlySet<ValueId>
    readonly ops: string
  }
  const cache = new Map<Group, Facts>()
  const factsOf = (group: Group): Facts => {
    const known = cache.get(group)
    if (known !== undefined) return known
    const nodes = candidates.find(group.names)
    const facts = {
      names: new Set(group.names),
      made: new Set(nodes.flatMap((node) => candidates.makes(node))),
      read: new Set(nodes.flatMap(candidates.reads)),
      factors: new Set(nodes.flatMap((node) => factors(candidates, node))),
      ops: nodes.map((node) => (node.kind === 'op' ? node.op : node.kind)).join(),
    }
    cache.set(group, facts)
    return facts
  }
  const meet = <T>(a: ReadonlySet<T>, b: ReadonlySet<T>): boolean => [...a].some((each) => b.has(each))
  return (one, other) => {
    const [a, b] = [factsOf(one), factsOf(other)]
    if (meet(a.names, b.names)) return false
    if (meet(a.made, b.read) || meet(b.made, a.read)) return true
    if (a.factors.size > 0 || b.factors.size > 0) return meet(a.factors, b.factors)
    return a.ops === b.ops || meet(a.read, b.read)
  }
}

const factors = (candidates: Candidates, node: ActiveNode): readonly ValueId[] =>
  node.kind === 'matmul' ? [node.a, node.b].map(candidates.source) : []

/** The graph's nodes and groups as a task of covering, with the given cost of each group. */
export function taskOf({ candidates, groups }: Pick<Space, 'candidates' | 'groups'>, costs: readonly number[]): CoverTask {
  const { nodes } = candidates
  const places = new Map(nodes.map(({ name }, at) => [name, at]))
  return {
    reads: nodes.map((node) => nodes.flatMap((other, at) => (candidates.feeds(other, node) ? [at] : []))),
    choices: groups.map(({ group }, at) => ({
      members: group.names.flatMap((name) => places.get(name) ?? []),
      cost: costs[at] ?? Number.POSITIVE_INFINITY,
    })),
  }
}
