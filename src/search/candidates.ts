/**
 * Groups of nodes that a plan could form in a graph, each derived and priced once. The search for a plan chooses from them, and `heddle plan`
 * explains them. A group that cannot be one kernel is recorded with the reason.
 */

import { type Pricing, type StepCost, stepCost } from '../cost/step.js'
import { HeddleError, usageError } from '../errors.js'
import { applyPlan } from '../fuse/apply.js'
import { withoutDefect } from '../fuse/defects.js'
import type { LayoutsByName } from '../fuse/graph/edit.js'
import { prepareGraph } from '../fuse/passes.js'
import type { PlannedKernel } from '../fuse/planned_kernel.js'
import { type Graph, type GraphNode, inputsOf, outputsOf, type ValueId } from '../ir/graph.js'
import type { Kernel } from '../ir/kernel.js'
import type { PlanDecl } from '../lang/plan.js'

/** A node that computes something. */
export type ActiveNode = Exclude<GraphNode, { kind: 'view' }>

export type Candidate =
  | {
      readonly kind: 'legal'
      /** Node names in graph order. */
      readonly names: readonly string[]
      /** The launched kernel; undefined for a library matmul. */
      readonly kernel: PlannedKernel | undefined
      readonly cost: StepCost
      /** The node that launches it, in the graph that has it. */
      readonly launch: { readonly graph: Graph; readonly node: ActiveNode }
    }
  | { readonly kind: 'refused'; readonly names: readonly string[]; readonly error: HeddleError }

/** Nodes for which heddle failed instead of deriving a kernel or refusing them. */
export interface Defect {
  readonly nodes: readonly string[]
  readonly message: string
}

/** Cost of a kernel that cannot be priced. */
const unpriced: StepCost = { bytesRead: 0, bytesWritten: 0, flops: 0, rereads: false, launches: 1, seconds: 0, parts: [] }

/** Name under which groups without a name of their own are derived. */
const working = 'fused'

export class Candidates {
  /** The graph whose nodes the plan's groups name. */
  readonly graph: Graph
  readonly nodes: readonly ActiveNode[]
  readonly ops: ReadonlyMap<string, Kernel>
  readonly layouts: LayoutsByName
  /** Defects so far: refused like other groups, but worth a note. */
  readonly defects: Defect[] = []
  readonly #pricing: Pricing
  readonly #known = new Map<string, Candidate>()
  readonly #sources: ReadonlyMap<ValueId, ValueId>

  /** @throws usage errors of preparing the graph for the plan */
  constructor(
    original: Graph,
    plan: PlanDecl,
    ops: ReadonlyMap<string, Kernel>,
    pricing: Pricing,
    layouts: LayoutsByName = new Map(),
  ) {
    this.graph = prepareGraph(original, plan, ops, layouts)
    this.layouts = layouts
    this.nodes = this.graph.nodes.flatMap((node) => (node.kind === 'view' ? [] : [node]))
    this.ops = ops
    this.#pricing = pricing
    const sources = new Map<ValueId, ValueId>()
    for (const node of this.graph.nodes) if (node.kind === 'view') sources.set(node.out, sources.get(node.input) ?? node.input)
    this.#sources = sources
  }

  /** A single node: its op's kernel, or the library's matmul. */
  alone(node: ActiveNode): Candidate & { readonly kind: 'legal' } {
    const kernel = node.kind === 'op' ? this.ops.get(node.op) : undefined
    if (node.kind === 'op' && kernel === undefined)
      throw usageError('plan.op', `${this.graph.name}: node ${node.name} uses op ${node.op}, which no spec declares`)
    return {
      kind: 'legal',
      names: [node.name],
      kernel,
      cost: this.#priceAlone(node, kernel),
      launch: { graph: this.graph, node },
    }
  }

  /** Price of a single node. A kernel that heddle fails to schedule has none: a defect, which `gen` reports where it emits the kernel. */
  #priceAlone(node: ActiveNode, kernel: Kernel | undefined): StepCost {
    try {
      return withoutDefect(`node ${node.name}`, () => stepCost(this.graph, node, kernel, this.#pricing))
    } catch (error) {
      if (!(error instanceof HeddleError) || error.code !== 'plan.defect') throw error
      this.defects.push({ nodes: [node.name], message: error.message })
      return unpriced
    }
  }

  /** The group of the named nodes: one node stays a single node, several are derived. @throws usage `plan.node` */
  of(names: readonly string[]): Candidate {
    const [only, ...rest] = this.find(names)
    return only !== undefined && rest.length === 0 ? this.alone(only) : this.fused(names)
  }

  /** The kernel derived for the named nodes, even for one. */
  fused(names: readonly string[]): Candidate {
    const ordered = this.find(names).map(({ name }) => name)
    const key = ordered.join()
    const known = this.#known.get(key) ?? this.#derive(ordered, [])
    this.#known.set(key, known)
    return known
  }

  /** The named nodes as the library's matmul with an epilogue. */
  library(names: readonly string[]): Candidate {
    return this.#derive(
      this.find(names).map(({ name }) => name),
      [working],
    )
  }

  /** Nodes by name, in graph order. @throws usage `plan.node` */
  find(names: readonly string[]): readonly ActiveNode[] {
    const missing = names.find((name) => !this.nodes.some((node) => node.name === name))
    if (missing !== undefined) {
      throw usageError('plan.node', `${this.graph.name} has no node ${missing}`, {
        hint: `nodes: ${this.nodes.map(({ name }) => name).join(', ')}`,
      })
    }
    return this.nodes.filter(({ name }) => names.includes(name))
  }

  /** The origin of a view, or the value itself. */
  source = (id: ValueId): ValueId => this.#sources.get(id) ?? id

  /** Values that a node reads, through views. */
  reads = (node: ActiveNode): readonly ValueId[] => inputsOf(node).map(this.source)

  /** Values that a node computes. */
  makes = (node: ActiveNode): readonly ValueId[] => outputsOf(node)

  /** True if a node reads a result of another. */
  feeds = (producer: ActiveNode, consumer: ActiveNode): boolean => {
    const read = this.reads(consumer)
    return outputsOf(producer).some((id) => read.includes(id))
  }

  #derive(names: readonly string[], library: readonly string[]): Candidate {
    try {
      const groups = [{ kernel: working, occurrences: [names] }]
      const plan = { name: working, graph: this.graph.name, groups, library }
      const planned = applyPlan(this.graph, plan, this.ops, this.layouts)
      const isMoved = planned.moved.length > 0
      const node = planned.graph.nodes.find((made) =>
        made.kind === 'op'
          ? made.op === working
          : made.kind === 'matmul' && (isMoved ? names.includes(made.name) : made.epilogue !== undefined),
      )
      if (node === undefined || node.kind === 'view') throw new Error(`internal: ${names.join(', ')} derived no node`)
      const kernel = planned.kernels.get(working) ?? planned.templates.get(working)
      const cost = withoutDefect(`group ${names.join(', ')}`, () => stepCost(planned.graph, node, kernel, this.#pricing))
      return { kind: 'legal', names, kernel, cost, launch: { graph: planned.graph, node } }
    } catch (error) {
      if (!(error instanceof HeddleError) || !error.code.startsWith('plan.')) throw error
      if (error.code === 'plan.defect') this.defects.push({ nodes: names, message: error.message })
      return { kind: 'refused', names, error }
    }
  }
}
