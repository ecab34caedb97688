/**
 * Applies a plan to a graph: every group becomes one node whose kernel is derived from its members; other nodes stay. Values that the fused kernel
 * reads in a finer shape pass through views, which move no data. Refuses groups that overlap, that would form a cycle, or whose bodies cannot be
 * merged.
 */
import { concerning, usageError } from '../errors.js'
import type { Graph, GraphNode, GraphValue, NodeOf } from '../ir/graph.js'
import type { Kernel } from '../ir/kernel.js'
import { memoiseHashes, structuralHash } from '../ir/structural_hash.js'
import { isTemplate, type TemplateKernel } from '../ir/template.js'
import { verifyGraph } from '../ir/verify_graph.js'
import { verifyTemplate } from '../ir/verify_template.js'
import type { PlanDecl } from '../lang/plan.js'
import { type Memo, noMemo } from '../memo.js'
import { deriveAttentionGroup, fedOperand } from './attention/group.js'
import type { DerivedGroup, MovedGroup } from './check/derived.js'
import { withoutDefect } from './defects.js'
import { withFacts } from './facts.js'
import { fusedNodes, libraryNodes } from './fused_nodes.js'
import { commonConstants, markConstants } from './graph/constants.js'
import { findNode, type LayoutsByName, prune, sortNodes } from './graph/edit.js'
import { scaleFoldingsOf } from './graph/scale_folding.js'
import { checkConvex, checkRead } from './group_nodes.js'
import { prepareGraph } from './passes.js'
import { boundTo, type PlannedKernel } from './planned_kernel.js'
import { checkLibrary, libraryMatmul } from './product/library.js'
import { deriveProducts } from './product/matmul.js'
import { movedProduct } from './product/moved_factor.js'
import { areParallel } from './product/parts.js'
import { bareMatmul, checkTuned } from './product/tuned.js'
import type { Derived } from './rows/derive.js'
import { deriveMembers } from './space/members.js'
import { commonTypes } from './space/parameters.js'
import { illegal, type Member } from './space/space.js'

export interface PlannedGraph {
  readonly graph: Graph
  /** The row programs and the templates the plan derives, by name. */
  readonly kernels: ReadonlyMap<string, Kernel>
  readonly templates: ReadonlyMap<string, TemplateKernel>
  /** Each group with the kernel derived from it, for a check of one against the other. */
  readonly groups: readonly DerivedGroup[]
  /** Library groups that only move a factor of their matmul; nodes without a kernel replace them. */
  readonly moved: readonly MovedGroup[]
}

type GroupNode = NodeOf<'op'> | NodeOf<'matmul'>

/**
 * @param ops as for `prepareGraph`
 * @param memo earlier derivations, by structural hash of their inputs
 * @throws usage errors of `prepareGraph`, `plan.overlap`, `plan.unread`, `plan.cycle`, `plan.illegal`, `plan.library`, `plan.tuned`,
 * `plan.differ`, `plan.defect`
 */
export function applyPlan(
  original: Graph,
  plan: PlanDecl,
  ops: ReadonlyMap<string, Kernel>,
  layouts: LayoutsByName = new Map(),
  memo: Memo = noMemo,
): PlannedGraph {
  return withoutDefect(`plan ${plan.name}`, () => {
    checkLibrary(plan)
    checkTuned(plan)
    const prepared = prepareGraph(original, plan, ops, layouts)
    const planned = new Grouping(prepared, plan, ops, layouts, memo).run()
    const scaleFoldings = scaleFoldingsOf(original, plan.quantised?.dynamic ?? [], ops)
    return scaleFoldings.length === 0 ? planned : { ...planned, graph: { ...planned.graph, folds: scaleFoldings } }
  })
}

/** Records the group of each node. @throws usage `plan.overlap` for a node of another group */
function markReplaced(replaced: Map<GraphNode, string>, plan: string, group: string, nodes: readonly GraphNode[]): void {
  for (const node of nodes) {
    const other = replaced.get(node)
    if (other !== undefined)
      throw usageError('plan.overlap', `plan ${plan}: node ${node.name} is in groups ${other} and ${group}`, {
        about: { path: [node.name], nodes: [node.name] },
      })
    replaced.set(node, group)
  }
}

/** Replaces the groups of a plan, one after the other. */
class Grouping {
  readonly #graph: Graph
  readonly #plan: PlanDecl
  readonly #ops: ReadonlyMap<string, Kernel>
  readonly #layouts: LayoutsByName
  readonly #memo: Memo
  readonly #kernels = new Map<string, PlannedKernel>()
  readonly #values: GraphValue[]
  readonly #replaced = new Map<GraphNode, string>()
  readonly #fused: GraphNode[] = []
  readonly #groups: DerivedGroup[] = []
  readonly #moved: MovedGroup[] = []

  /** @param graph prepared for the plan */
  constructor(graph: Graph, plan: PlanDecl, ops: ReadonlyMap<string, Kernel>, layouts: LayoutsByName, memo: Memo) {
    this.#graph = graph
    this.#plan = plan
    this.#ops = ops
    this.#layouts = layouts
    this.#memo = memo
    this.#values = [...graph.values]
  }

  run(): PlannedGraph {
    for (const { kernel: name, occurrences } of this.#plan.groups)
      for (const nodes of occurrences)
        concerning({ path: ['groups', name], nodes }, () => withoutDefect(`group ${name}`, () => this.#fuse(name, nodes)))
    const others = this.#graph.nodes.filter((node) => !this.#replaced.has(node))
    const planned = prune({ ...this.#graph, values: this.#values, nodes: [...others, ...this.#fused] })
    const made = [...this.#kernels]
    const kernels = new Map(made.flatMap(([name, kernel]) => (isTemplate(kernel) ? [] : [[name, kernel] as const])))
    const templates = new Map(made.flatMap(([name, kernel]) => (isTemplate(kernel) ? [[name, kernel] as const] : [])))
    const graph: Graph = { ...planned, nodes: sortNodes(planned.nodes, this.#graph) }
    verifyGraph(graph, `grouping of plan ${this.#plan.name}`, new Map<string, PlannedKernel>([...this.#ops, ...made]))
    return { graph, kernels, templates, groups: this.#groups, moved: this.#moved }
  }

  #fuse(name: string, names: readonly string[]): void {
    const graph = this.#graph
    const found = names.map((member) => findNode(graph, this.#plan.name, `group ${name}`, member))
    const nodes = graph.nodes.flatMap((node) => found.find((member) => member === node) ?? [])
    markReplaced(this.#replaced, this.#plan.name, name, nodes)
    checkConvex(graph, name, nodes)
    checkRead(graph, name, nodes)
    const members = membersOf(this.#plan.name, nodes, this.#ops)
    const isLibrary = this.#plan.library?.includes(name) === true
    const moved = isLibrary ? movedProduct(graph, nodes, this.#values, members) : undefined
    if (moved !== undefined) {
      this.#values.push(...moved.values.slice(this.#values.length))
      this.#fused.push(...moved.nodes)
      this.#moved.push({ name, graph, nodes, instead: moved })
      return
    }
    const product = isLibrary ? libraryMatmul(graph, name, nodes) : undefined
    const derived = this.#derived(name, nodes, members)
    this.#groups.push({ name, graph, nodes, derived })
    if (product !== undefined) {
      this.#fused.push(...libraryNodes(this.#values, name, product, nodes, derived))
      return
    }
    const bound = this.#bound(name, derived)
    if (this.#plan.tuned?.includes(name) === true) {
      this.#fused.push({ ...bareMatmul(name, nodes), generated: name })
      return
    }
    const { views, node } = fusedNodes(this.#values, name, nodes, bound)
    this.#fused.push(...views, node)
  }

  /** The kernel of a group, from earlier derivations if one has the same inputs. */
  #derived(name: string, nodes: readonly GroupNode[], members: ReadonlyMap<string, Kernel>): Derived<PlannedKernel> {
    const { name: plan, dtypes } = this.#plan
    const follows = [name, this.#graph, dtypes, nodes.map((node) => node.name), [...members], this.#layouts]
    const { derived, keys } = this.#memo.of('group', follows.map(structuralHash), () => {
      const bare = forTypes(deriveGroup(this.#graph, plan, name, nodes, members, this.#layouts), dtypes)
      const made = markConstants(this.#graph, withFacts(this.#graph, nodes, bare, members))
      if (isTemplate(made.kernel)) verifyTemplate(made.kernel, `deriving ${name} of plan ${plan}`)
      return { derived: made, keys: [made, made.kernel].map(structuralHash) }
    })
    memoiseHashes([derived, derived.kernel], keys)
    return derived
  }

  /** A use of a kernel in the parameters of its first use. @throws usage `plan.differ` */
  #bound(name: string, derived: Derived<PlannedKernel>): Derived<PlannedKernel> {
    const known = this.#kernels.get(name)
    const bound = known === undefined ? derived : boundTo(known, derived)
    if (bound === undefined) {
      throw usageError('plan.differ', `plan ${this.#plan.name}: the occurrences of ${name} derive different kernels`, {
        hint: 'give the occurrences different kernel names',
      })
    }
    this.#kernels.set(name, known === undefined ? derived.kernel : commonConstants(known, derived.kernel))
    return bound
  }
}

/** Restricts a kernel to fewer storage types. */
function forTypes(derived: Derived<PlannedKernel>, dtypes: PlanDecl['dtypes']): Derived<PlannedKernel> {
  if (dtypes === undefined) return derived
  const { kernel } = derived
  const types = Object.entries(kernel.types).map(([param, choices]) => [param, choices.filter((type) => isOneOf(dtypes, type))])
  return { ...derived, kernel: { ...kernel, types: Object.fromEntries(types) } }
}

const isOneOf = (list: readonly string[], item: string): boolean => list.includes(item)

/** Derives the kernel of a group by its contents: a row program, a matmul with its epilogue, or attention. */
function deriveGroup(
  graph: Graph,
  plan: string,
  name: string,
  nodes: readonly GroupNode[],
  ops: ReadonlyMap<string, Kernel>,
  layouts: LayoutsByName,
): Derived<PlannedKernel> {
  const members = nodes.flatMap((node) => (node.kind === 'op' ? [memberOf(plan, node, ops)] : []))
  commonTypes(name, members)
  const matmuls = nodes.flatMap((node) => (node.kind === 'matmul' ? [node] : []))
  const [first, second, third] = matmuls
  if (first === undefined) return deriveMembers(graph, name, members, layouts)
  if (areParallel(graph, matmuls)) return deriveProducts(graph, name, matmuls, members, layouts)
  if (third !== undefined) throw illegal(name, first.name, third.name, 'a kernel holds one matmul, or the two of attention')
  const weightsSide = second === undefined ? undefined : fedOperand(graph, first, second, members)
  if (second !== undefined && weightsSide !== undefined)
    return deriveAttentionGroup(graph, name, { scores: first, context: second, weightsSide }, members, layouts)
  throw illegal(
    name,
    first.name,
    second?.name ?? first.name,
    'neither of the two matmuls feeds the other, and they share no input',
  )
}

/** Kernels of the group's ops alone, so that derivations from them can be cached. @throws usage `plan.op` */
const membersOf = (plan: string, nodes: readonly GroupNode[], ops: ReadonlyMap<string, Kernel>): ReadonlyMap<string, Kernel> =>
  new Map(nodes.flatMap((node) => (node.kind === 'op' ? [[node.op, memberOf(plan, node, ops).kernel] as const] : [])))

function memberOf(plan: string, node: NodeOf<'op'>, ops: ReadonlyMap<string, Kernel>): Member {
  const kernel = ops.get(node.op)
  if (kernel === undefined)
    throw usageError('plan.op', `plan ${plan}: node ${node.name} uses op ${node.op}, which no spec declares`)
  return { node, kernel }
}
