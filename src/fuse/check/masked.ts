/**
 * The one rule of attention that bodies do not have: a query with all keys masked yields zeros, where a body would yield NaN or the mean of the
 * masked values, and a value of its row that no other node of the group reads, such as a log-sum-exp, is -Infinity. A caller that runs the nodes of
 * attention one by one, to check a kernel against them, applies that rule.
 */

import { hiddenBelow } from '../../ir/attention_reference.js'
import type { HostTensor } from '../../ir/evaluate.js'
import type { Graph, NodeOf, ValueId } from '../../ir/graph.js'
import { emptyKernel, type Kernel } from '../../ir/kernel.js'
import { isTemplate, type TemplateKernel } from '../../ir/template.js'
import { visitKernel } from '../../ir/walk.js'
import { fedOperand } from '../attention/group.js'
import { Surroundings } from '../attention/parts.js'

type Kernels = ReadonlyMap<string, Kernel | TemplateKernel>
type Revise = (id: ValueId, made: HostTensor) => ArrayLike<number>

/** The rule for every group of a plan, given the names of its nodes, for one run of the graph's nodes. */
export function maskedRules(graph: Graph, groups: readonly (readonly string[])[], kernels: Kernels): Revise {
  const rules = groups.flatMap((names) => {
    const nodes = graph.nodes.filter(
      (node): node is NodeOf<'op'> | NodeOf<'matmul'> => node.kind !== 'view' && names.includes(node.name),
    )
    return maskedRule(graph, nodes, kernels) ?? []
  })
  return (id, { data, shape }) => rules.reduce((made, rule) => rule(id, { data: made, shape }), data)
}

/** Sets the weights of queries whose keys are all masked to zero, as the composition needs it in groups of attention. */
export function maskedRule(
  graph: Graph,
  nodes: readonly (NodeOf<'op'> | NodeOf<'matmul'>)[],
  kernels: Kernels,
): Revise | undefined {
  const [scores, context] = nodes.filter((node): node is NodeOf<'matmul'> => node.kind === 'matmul')
  if (scores === undefined || context === undefined) return undefined
  const members = nodes.flatMap((node) => (node.kind === 'op' ? [{ node, kernel: emptyKernel }] : []))
  const operand = fedOperand(graph, scores, context, members)
  const weights = operand === undefined ? undefined : context[operand]
  const axes = operand === undefined ? [] : context.subscripts[operand]
  const along = axes.findIndex((axis) => !context.subscripts.out.includes(axis))
  const last = members.find(({ node }) =>
    Object.values(node.outputs).some((id) => id === weights || isSeenAs(graph, id, weights)),
  )
  const behind = new Set(new Surroundings(graph, members).after(context.out).flatMap(({ node }) => Object.values(node.outputs)))
  const isAfter = (id: ValueId): boolean => behind.has(id) || id === weights
  const logits = new Set<ValueId>(Object.values(last?.node.inputs ?? {}))
  // A softmax that masks its own input shows no masked scores.
  const masksItself = last !== undefined && hasLow(kernels.get(last.node.op))
  const read = new Set<ValueId>(members.flatMap(({ node }) => Object.values(node.inputs)))
  const ends = new Set<ValueId>(members.flatMap(({ node }) => Object.values(node.outputs)).filter((id) => !read.has(id)))
  let pairs = 0
  let low: ArrayLike<number> | undefined
  return (id: ValueId, { data, shape }: HostTensor): ArrayLike<number> => {
    if (logits.has(id) && data.length === size(shape) && shape.at(-1) !== undefined) low = longer(low, data)
    if (id === scores.out) pairs = data.length
    const isRow = ends.has(id) && data.length < pairs && !isAfter(id)
    if (isRow) return Array.from(data, (value) => (Number.isNaN(value) || value < hiddenBelow ? Number.NEGATIVE_INFINITY : value))
    if (id !== weights || along < 0) return data
    const made = Float64Array.from(data)
    const length = shape[along] ?? 1
    const stride = shape.slice(along + 1).reduce((product, extent) => product * extent, 1)
    // Scores are found by their offsets, which equal those of the weights where both have keys last.
    const known = !masksItself && stride === 1 && low?.length === made.length ? low : undefined
    for (let first = 0; first < made.length; first++) {
      if (Math.floor(first / stride) % length !== 0) continue
      const places = Array.from({ length }, (_, at) => first + at * stride)
      const one = made[first] ?? 0
      const isMasked =
        known === undefined
          ? length > 1 && places.every((at) => Number.isNaN(made[at]) || made[at] === one)
          : places.every((at) => (known[at] ?? 0) < hiddenBelow)
      if (isMasked) for (const at of places) made[at] = 0
    }
    return made
  }
}

const size = (shape: readonly number[]): number => shape.reduce((product, extent) => product * extent, 1)

/** The scores are the largest tensor that a softmax reads: one element per pair. */
const longer = (known: ArrayLike<number> | undefined, data: ArrayLike<number>): ArrayLike<number> =>
  known === undefined || data.length >= known.length ? data : known

/** True if one value is another under views. */
const isSeenAs = (graph: Graph, from: ValueId, to: ValueId | undefined): boolean =>
  graph.nodes.some((node) => node.kind === 'view' && node.input === from && (node.out === to || isSeenAs(graph, node.out, to)))

/** True if a body has a constant below every score. */
function hasLow(kernel: Kernel | TemplateKernel | undefined): boolean {
  let found = false
  if (kernel !== undefined && !isTemplate(kernel))
    visitKernel(kernel, (expr) => {
      found ||= expr.kind === 'const' && expr.type === 'f32' && Math.abs(Number(expr.value)) >= -hiddenBelow
    })
  return found
}
