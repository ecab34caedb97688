/** Judges a plan of a random graph: right if it is refused with a typed error, or computes the same as the graph. */
import { HeddleError } from '../../../src/errors.js'
import { applyPlan, type PlannedGraph } from '../../../src/fuse/apply.js'
import { runNodes, shapeOf } from '../../../src/fuse/check/compose.js'
import { checkDerived } from '../../../src/fuse/check/derived.js'
import { hiddenBelow } from '../../../src/ir/attention_reference.js'
import type { Graph, ValueId } from '../../../src/ir/graph.js'
import type { Kernel } from '../../../src/ir/kernel.js'
import type { TemplateKernel } from '../../../src/ir/template.js'
import type { PlanDecl } from '../../../src/lang/plan.js'
import { reordered } from '../../../src/verify/tolerance.js'
import { type Case, type Content, Random } from './draft.js'

export type Verdict =
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'accepted'; readonly planned: PlannedGraph }
  /** The kernel differs from the nodes. */
  | { readonly kind: 'wrong'; readonly how: string }

export const planOf = ({ groups, library }: Case): PlanDecl => ({
  name: 'drawn',
  graph: 'drawn',
  groups: groups.map((nodes, at) => ({ kernel: `group${at}`, occurrences: [nodes] })),
  ...(library === undefined ? {} : { library }),
})

/** @param change the effect of a planted fault on the planned graph */
export function judge(drawn: Case, change: (planned: PlannedGraph) => PlannedGraph = (planned) => planned): Verdict {
  const graph = drawn.draft.graph()
  const ops = drawn.draft.kernels
  let planned: PlannedGraph
  try {
    planned = change(applyPlan(graph, planOf(drawn), ops))
  } catch (error) {
    if (
      error instanceof HeddleError &&
      error.class === 'usage' &&
      error.code.startsWith('plan.') &&
      error.code !== 'plan.meaning' &&
      error.code !== 'plan.defect'
    )
      return { kind: 'refused', reason: reasonOf(error) }
    throw error
  }
  try {
    for (const group of planned.groups) checkDerived(group, ops)
  } catch (error) {
    if (!(error instanceof HeddleError) || error.code !== 'plan.meaning') throw error
    // Bodies that yield NaN for every input cannot be checked: the only valid reason of a refusal here.
    if (error.message.includes('give no finite number')) return { kind: 'refused', reason: 'plan.meaning: no finite number' }
    return { kind: 'wrong', how: error.message }
  }
  const how = difference(drawn, graph, planned)
  return how === undefined ? { kind: 'accepted', planned } : { kind: 'wrong', how }
}

/** A refusal without the names of nodes and groups. */
const reasonOf = ({ code, message }: HeddleError): string =>
  `${code}: ${message.replace(/^.*cannot be one kernel: /, '').replace(/\b(op|mm|view|group|in)\d+\b/g, '$1')}`

/** The first element in which the planned graph differs from the random one, on separate data. */
function difference(drawn: Case, graph: Graph, planned: PlannedGraph): string | undefined {
  const { dims, draft } = drawn
  const random = new Random(drawn.seed ^ 0x5eed)
  const values = new Map<ValueId, Float64Array>()
  for (const [id, content] of draft.contents) {
    const size = shapeOf(graph, id, dims).reduce((product, extent) => product * extent, 1)
    values.set(id, Float64Array.from({ length: size }, element(random, content, dims)))
  }
  const isAttention = [...planned.templates.values()].some(({ kind }) => kind !== 'matmul')
  const expected = runDrawn(drawn, graph, values, isAttention)
  const kernels = new Map<string, Kernel | TemplateKernel>([...draft.kernels, ...planned.kernels, ...planned.templates])
  const made = runNodes(planned.graph, planned.graph.nodes, { values, dims, attrs: {}, kernels })
  for (const id of Object.values(draft.outputs)) {
    const [got, want] = [made.get(id) ?? [], expected.get(id) ?? []]
    for (let at = 0; at < want.length; at++) {
      const [a, b] = [got[at] ?? Number.NaN, want[at] ?? Number.NaN]
      if (Object.is(a, b) || Math.abs(a - b) <= reordered * (1 + Math.abs(b))) continue
      return `element ${at} of value ${id} is ${a}, the nodes give ${b} (${JSON.stringify(dims)})`
    }
    if (got.length !== want.length) return `value ${id} has ${got.length} elements, the nodes give ${want.length}`
  }
  return undefined
}

function element(random: Random, content: Content, dims: Case['dims']): () => number {
  if (content === 'float') return () => 3 * random.next() - 1.5
  return content === 'id' ? () => random.below(3) : () => random.below(1 + Math.max(dims.s ?? 1, dims.t ?? 1))
}

/** The random graph, node by node. Where attention is one kernel, fully masked queries have weights of zero. */
function runDrawn({ draft, dims, masked }: Case, graph: Graph, values: ReadonlyMap<ValueId, Float64Array>, isAttention: boolean) {
  let logits: ArrayLike<number> = []
  const revise = (id: ValueId, { data, shape }: { data: ArrayLike<number>; shape: readonly number[] }): ArrayLike<number> => {
    if (id === masked?.logits) logits = data
    if (id !== masked?.weights) return data
    const length = shape.at(-1) ?? 1
    const isHidden = (row: number): boolean => {
      for (let at = row * length; at < (row + 1) * length; at++) if (!((logits[at] ?? 0) < hiddenBelow)) return false
      return true
    }
    return Float64Array.from(data, (weight, at) => (isHidden(Math.floor(at / length)) ? 0 : weight))
  }
  return runNodes(graph, graph.nodes, { values, dims, attrs: {}, kernels: draft.kernels, ...(isAttention ? { revise } : {}) })
}
