/** A graph as a problem of a measured search: its forms with stacked matmuls, their legal groups, and the launch of each at each shape. */
import { createHash } from 'node:crypto'
import type { CostDevice, PriceType } from '../cost/device.js'
import { extentsOf, type Pricing, priceDims, stepCost } from '../cost/step.js'
import { HeddleError } from '../errors.js'
import type { LayoutsByName } from '../fuse/graph/edit.js'
import { anonymous, type PlannedKernel } from '../fuse/planned_kernel.js'
import type { Graph } from '../ir/graph.js'
import type { Kernel } from '../ir/kernel.js'
import type { PlanDecl } from '../lang/plan.js'
import { Candidates } from './candidates.js'
import type { Problem } from './covers.js'
import type { Launch } from './price.js'
import { launchId } from './record.js'
import { type Space, type SpaceGroup, spaceOf, taskOf } from './space.js'
import { stacksOf } from './stacks.js'

export interface ProblemOptions {
  readonly ops: ReadonlyMap<string, Kernel>
  readonly layouts: LayoutsByName
  readonly packed?: PlanDecl['packed']
  /** Dimensions that differ from the usual ones, for each shape. */
  readonly shapes: readonly Pricing['dims'][]
  readonly dtype: PriceType
  readonly device: CostDevice
  /** Called with the number of groups of each form of the graph. */
  readonly onSpace?: (space: Space) => void
  readonly signal?: AbortSignal | undefined
}

/** A form of the graph. */
export interface GraphForm {
  readonly stacked: PlanDecl['stacked']
  readonly space: Space
}

/** A launch to measure: a group, at the dimensions of a shape. */
export interface Subject {
  readonly launch: Launch
  readonly form: GraphForm
  readonly group: SpaceGroup
  readonly dims: Pricing['dims']
}

export interface GraphProblem {
  readonly problem: Problem
  /** In the order of the problem's variants. */
  readonly forms: readonly GraphForm[]
  /** The first group of each launch, by its id. */
  readonly subjects: ReadonlyMap<string, Subject>
}

/** @throws usage `plan.*` for packing that the graph does not allow, `graph.dim`; the signal's reason */
export function problemOf(graph: Graph, options: ProblemOptions): GraphProblem {
  const { dtype, device, packed } = options
  const pricings = options.shapes.map((dims): Pricing => ({ device, dtype, dims: priceDims(graph, packed, dims) }))
  const forms = [undefined, ...stacksOf(graph)].flatMap((stacked) => formOf(graph, stacked, options, pricings) ?? [])
  const subjects = new Map<string, Subject>()
  const variants = forms.map((form) => {
    const { groups, candidates } = form.space
    const { reads, choices } = taskOf(form.space, [])
    const launched = groups.map((group, at) => {
      const launches = pricings.map((pricing) => {
        const launch = launchOf(group, pricing)
        if (!subjects.has(launch.id)) subjects.set(launch.id, { launch, form, group, dims: pricing.dims })
        return launch
      })
      return { members: choices[at]?.members ?? [], launches }
    })
    if (candidates.nodes.length !== reads.length) throw new Error('internal: a task of other nodes')
    return { reads, groups: launched }
  })
  return { problem: { shapes: pricings.map(({ dims }) => shapeName(dims)), variants }, forms, subjects }
}

export const shapeName = (dims: Pricing['dims']): string =>
  Object.entries(dims)
    .map(([dim, extent]) => `${dim}=${extent}`)
    .join(',')

/** A form of the graph with its groups; undefined for stacks that cannot be made. */
function formOf(
  graph: Graph,
  stacked: PlanDecl['stacked'],
  { ops, layouts, packed, onSpace, signal }: ProblemOptions,
  pricings: readonly Pricing[],
): GraphForm | undefined {
  const [pricing] = pricings
  if (pricing === undefined) throw new Error('internal: a search without a shape')
  try {
    const candidates = new Candidates(
      graph,
      { name: 'search', graph: graph.name, packed, stacked, groups: [] },
      ops,
      pricing,
      layouts,
    )
    const space = spaceOf(candidates, { signal })
    onSpace?.(space)
    return { stacked, space }
  } catch (error) {
    if (stacked === undefined || !(error instanceof HeddleError) || !error.code.startsWith('plan.')) throw error
    return undefined
  }
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64url').slice(0, 16)

/** Hash of a kernel without names. */
export const contentOfKernel = (kernel: PlannedKernel): string => hashOf(anonymous(kernel))

/** Name of a kernel in a search, by its content. */
export const nameOfContent = (content: string): string => `search_${content.replace(/\W/g, (sign) => `x${sign.charCodeAt(0)}`)}`

const contents = new WeakMap<SpaceGroup, string>()

/** Hash of what a group launches, without names, places and sizes. */
function contentOf(group: SpaceGroup): string {
  const known = contents.get(group)
  if (known !== undefined) return known
  const { kernel, launch } = group.group
  const content = kernel === undefined ? hashOf(libraryText(launch)) : contentOfKernel(kernel)
  contents.set(group, content)
  return content
}

/** A matmul of the library: its axes, storage types and epilogue. */
function libraryText({ graph, node }: SpaceGroup['group']['launch']): string {
  if (node.kind !== 'matmul') throw new Error(`internal: ${node.name} has no kernel`)
  const parts = Object.entries(node.epilogue ?? {}).flatMap(([part, value]) =>
    value === undefined || value === false ? [] : [part],
  )
  return JSON.stringify([node.subscripts, [node.a, node.b, node.out].map((id) => graph.values[id]?.dtype), parts])
}

function launchOf(group: SpaceGroup, pricing: Pricing): Launch {
  const { kernel, launch, cost } = group.group
  const sizes = extentsOf(launch.graph, launch.node, kernel, pricing)
  const content = contentOf(group)
  const model = cost.seconds === 0 ? 0 : stepCost(launch.graph, launch.node, kernel, pricing).seconds
  return { id: launchId({ content, dtype: pricing.dtype, sizes }), content, kind: group.kind, sizes, model: model || unpriced }
}

/** Seconds of a kernel that cannot be priced. */
const unpriced = 1e-5
