/**
 * Applies a plan to a graph: every group becomes one node whose kernel is derived from its members; other nodes stay. Values that the fused
 * kernel reads in a finer shape pass through views, which move no data. Refuses groups that overlap, that would make a cycle, or whose bodies
 * cannot be merged.
 */
import { concerning, usageError } from '../errors.js'
import { type Graph, type GraphNode, type GraphValue, inputsOf, type NodeOf, outputsOf, type ValueId } from '../ir/graph.js'
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
  return withoutDefect(`plan ${plan.name}`, () => grouped(original, plan, ops, layouts, memo))
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

function grouped(
  original: Graph,
  plan: PlanDecl,
  ops: ReadonlyMap<string, Kernel>,
  layouts: LayoutsByName,
  memo: Memo,
): PlannedGraph {
  checkLibrary(plan)
  checkTuned(plan)
  const graph = prepareGraph(original, plan, ops, layouts)
  const made = new Map<string, PlannedKernel>()
  const values: GraphValue[] = [...graph.values]
  const replaced = new Map<GraphNode, string>()
  const fused: GraphNode[] = []
  const groups: DerivedGroup[] = []
  const movedGroups: MovedGroup[] = []
  const fuse = (name: string, names: readonly string[]): void => {
    const found = names.map((member) => findNode(graph, plan.name, `group ${name}`, member))
    const ordered = graph.nodes.flatMap((node) => found.find((member) => member === node) ?? [])
    markReplaced(replaced, plan.name, name, ordered)
    checkConvex(graph, name, ordered)
    checkRead(graph, name, ordered)
    const members = membersOf(plan.name, ordered, ops)
    const isLibrary = plan.library?.includes(name) === true
    const moved = isLibrary ? movedProduct(graph, ordered, values, members) : undefined
    if (moved !== undefined) {
      values.push(...moved.values.slice(values.length))
      fused.push(...moved.nodes)
      movedGroups.push({ name, graph, nodes: ordered, instead: moved })
      return
    }
    const product = isLibrary ? libraryMatmul(graph, name, ordered) : undefined
    const follows = [name, graph, plan.dtypes, ordered.map((node) => node.name), [...members], layouts]
    const { derived, keys } = memo.of('group', follows.map(structuralHash), () => {
      const bare = forTypes(deriveGroup(graph, plan.name, name, ordered, members, layouts), plan.dtypes)
      const made = markConstants(graph, withFacts(graph, ordered, bare, members))
      if (isTemplate(made.kernel)) verifyTemplate(made.kernel, `deriving ${name} of plan ${plan.name}`)
      return { derived: made, keys: [made, made.kernel].map(structuralHash) }
    })
    memoiseHashes([derived, derived.kernel], keys)
    groups.push({ name, graph, nodes: ordered, derived })
    if (product !== undefined) {
      fused.push(...libraryNodes(values, name, product, ordered, derived))
      return
    }
    const known = made.get(name)
    const bound = known === undefined ? derived : boundTo(known, derived)
    if (bound === undefined) {
      throw usageError('plan.differ', `plan ${plan.name}: the occurrences of ${name} derive different kernels`, {
        hint: 'give the occurrences different kernel names',
      })
    }
    made.set(name, known === undefined ? derived.kernel : commonConstants(known, derived.kernel))
    if (plan.tuned?.includes(name) === true) {
      fused.push({ ...bareMatmul(name, ordered), generated: name })
      return
    }
    const { views, node } = fusedNodes(values, name, ordered, bound)
    fused.push(...views, node)
  }
  for (const { kernel: name, occurrences } of plan.groups)
    for (const nodes of occurrences)
      concerning({ path: ['groups', name], nodes }, () => withoutDefect(`group ${name}`, () => fuse(name, nodes)))
  const others = graph.nodes.filter((node) => !replaced.has(node))
  const planned = prune({ ...graph, values, nodes: [...others, ...fused] })
  const kernels = new Map([...made].flatMap(([name, kernel]) => (isTemplate(kernel) ? [] : [[name, kernel] as const])))
  const templates = new Map([...made].flatMap(([name, kernel]) => (isTemplate(kernel) ? [[name, kernel] as const] : [])))
  const sorted: Graph = { ...planned, nodes: sortNodes(planned.nodes, graph) }
  verifyGraph(sorted, `grouping of plan ${plan.name}`, new Map<string, PlannedKernel>([...ops, ...made]))
  const folds = scaleFoldingsOf(original, plan.quantised?.dynamic ?? [], ops)
  return { graph: folds.length === 0 ? sorted : { ...sorted, folds }, kernels, templates, groups, moved: movedGroups }
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
  const weights = second === undefined ? undefined : fedOperand(graph, first, second, members)
  if (second !== undefined && weights !== undefined)
    return deriveAttentionGroup(graph, name, { scores: first, context: second, weights }, members, layouts)
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

/** Refuses a path that leaves the group and comes back: the fused node would wait for itself. */
function checkConvex(graph: Graph, group: string, members: readonly GroupNode[]): void {
  const inside = new Set<GraphNode>(members)
  // By value: the member that made it, and the member whose result has since passed a node outside.
  type Origins = Map<ValueId, string | undefined>
  const made: Origins = new Map()
  const left: Origins = new Map()
  const first = (node: GraphNode, of: Origins): string | undefined =>
    inputsOf(node)
      .map((id) => of.get(id))
      .find((name) => name !== undefined)
  for (const node of graph.nodes) {
    const gone = first(node, left)
    const own = first(node, made)
    if (inside.has(node) && gone !== undefined) {
      const between = nodesBetween(graph, inside, gone, node)
      const [is, them] = between.length === 1 ? ['is', 'it'] : ['are', 'them']
      throw illegal(
        group,
        gone,
        node.name,
        `${listed(between)} ${is} between them, and would have to run inside the kernel`,
        `add ${them} to the group: ${between.map((name) => `'${name}'`).join(', ')}; or leave one of the two nodes out`,
      )
    }
    for (const id of outputsOf(node)) {
      if (inside.has(node)) made.set(id, node.name)
      else if (node.kind === 'view') {
        made.set(id, own)
        left.set(id, gone)
      } else left.set(id, gone ?? own)
    }
  }
}

/** Nodes outside of a group on paths from one of its members to another. */
function nodesBetween({ nodes }: Graph, inside: ReadonlySet<GraphNode>, from: string, to: GraphNode): readonly string[] {
  const reached = new Set(nodes.flatMap((node) => (node.name === from && inside.has(node) ? outputsOf(node) : [])))
  const after = nodes.filter((node) => {
    if (!inputsOf(node).some((id) => reached.has(id))) return false
    for (const id of outputsOf(node)) reached.add(id)
    return true
  })
  const wanted = new Set(inputsOf(to))
  const found = [...after].reverse().filter((node) => {
    if (!outputsOf(node).some((id) => wanted.has(id))) return false
    for (const id of inputsOf(node)) wanted.add(id)
    return true
  })
  return found.reverse().flatMap((node) => (node.kind === 'view' || inside.has(node) ? [] : [node.name]))
}

/** Names in a sentence. */
const listed = (names: readonly string[]): string =>
  names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`

/** @throws usage `plan.unread` for a group whose results nothing uses */
function checkRead({ nodes, outputs }: Graph, group: string, members: readonly GroupNode[]): void {
  const inside = new Set<GraphNode>(members)
  const read = new Set([...Object.values(outputs), ...nodes.flatMap((node) => (inside.has(node) ? [] : inputsOf(node)))])
  if (members.some((node) => outputsOf(node).some((id) => read.has(id)))) return
  const names = members.map(({ name }) => name).join(', ')
  throw usageError('plan.unread', `group ${group}: nothing reads the results of nodes ${names}`, {
    hint: 'return it among the outputs of the graph, or leave the nodes out of both',
  })
}
