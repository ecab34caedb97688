/**
 * Checks the kernel that a plan derived from a group against the composition of the group's own bodies, on small random sizes. An error in a rule
 * of derivation, such as a swapped index or a dropped term, shows here, and the plan is refused before any source is generated.
 *
 * Attention has a special rule: a query with all keys masked yields zeros, where a body would yield NaN or the mean of the masked values. The
 * composition applies that rule too if all scores that its softmax reads are below every unmasked score.
 */
import { createHash } from 'node:crypto'
import { HeddleError, usageError } from '../../errors.js'
import { dtypeInfo } from '../../ir/dtype.js'
import { evaluateKernel, type HostTensor } from '../../ir/evaluate.js'
import { evaluateTemplate } from '../../ir/evaluate_template.js'
import { type Graph, inputsOf, type NodeOf, type ValueId } from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'
import { evaluateExtent } from '../../ir/shape.js'
import { structuralHash } from '../../ir/structural_hash.js'
import { isTemplate, type TemplateKernel } from '../../ir/template.js'
import { reordered } from '../../verify/tolerance.js'
import { graphFacts } from '../facts.js'
import type { Instead } from '../product/moved_factor.js'
import type { Derived } from '../rows/derive.js'
import type { Binding } from '../space/parameters.js'
import { attrOf, type Given, runNodes } from './compose.js'
import { drawAttrs, drawDims, drawnPacking, drawValues, randomFrom } from './inputs.js'
import { maskedRule } from './masked.js'

/** A group of a plan. */
interface Group {
  readonly name: string
  readonly graph: Graph
  readonly nodes: readonly (NodeOf<'op'> | NodeOf<'matmul'>)[]
}

/** A group, and the kernel derived from it. */
export interface DerivedGroup extends Group {
  readonly derived: Derived<Kernel | TemplateKernel>
}

/** A group that is replaced by nodes without a kernel. */
export interface MovedGroup extends Group {
  readonly instead: Instead
}

export type CheckedGroup = DerivedGroup | MovedGroup

/**
 * Number of trials per group, with different sizes and data. A draw does not count where bodies read outside of a tensor; there are at most
 * `draws`.
 */
const [trials, draws] = [3, 60]

/** Groups that passed the check before, by structural hash. */
export interface Verified {
  readonly has: (key: string) => boolean
  readonly add: (key: string) => void
}

/** Hash of the group, its bodies and the derived kernel. It is the same in every process. */
export function contentOf(group: CheckedGroup, kernels: ReadonlyMap<string, Kernel>): string {
  const { name, graph, nodes } = group
  const made = 'derived' in group ? group.derived : group.instead
  const members = nodes.map((node) => (node.kind === 'op' ? kernels.get(node.op) : undefined))
  const parts = [version, name, graph.values, graph.nodes, graph.packing, nodes, members, made]
  return createHash('sha256').update(parts.map(structuralHash).join(' ')).digest('hex')
}

/** Version of this check. A change makes groups that passed an older version be checked again. */
const version = 6

/** @throws usage `plan.meaning` naming the nodes, the element and both numbers if the kernel computes another value */
export function checkDerived(group: CheckedGroup, kernels: ReadonlyMap<string, Kernel>): void {
  let tried = 0
  const seen = new Set<Compared>()
  let outside: HeddleError | undefined
  for (let seed = 1; seed <= draws && tried < trials; seed++) {
    try {
      const compared = tryOnce(group, kernels, seed)
      seen.add(compared)
      if (compared === 'numbers') tried += 1
    } catch (error) {
      if (!(error instanceof HeddleError) || error.code !== 'evaluate.bounds') throw error
      outside = error
    }
  }
  // Bodies may yield zeros on all data, such as `x - x`.
  if (tried > 0 || seen.has('zeros')) return
  const names = group.nodes.map(({ name }) => name).join(', ')
  if (seen.size > 0) {
    throw usageError(
      'plan.meaning',
      `group ${group.name}: the bodies of ${names} give no finite number on any data that was tried`,
      {
        hint: 'the kernel cannot be checked against them: keep their results finite for numbers between -1 and 1',
      },
    )
  }
  throw usageError(
    'plan.meaning',
    `group ${group.name}: no data was found on which the bodies of ${names} stay within their tensors`,
    {
      hint: readsIntegers(group)
        ? 'an op of the group indexes a tensor by integers of another; clamp them in its body'
        : `${outside?.message ?? 'a read is outside'}, for extents from 2 to 7: read within the extents of the op, or state what it needs of them: facts: { n: { atLeast: 'm' } }`,
    },
  )
}

/** True if nodes of a group read integers, which may be indices into tensors. */
const readsIntegers = ({ graph, nodes }: Group): boolean =>
  nodes.flatMap(inputsOf).some((id) => {
    const dtype = graph.values[id]?.dtype
    return typeof dtype === 'string' && dtypeInfo[dtype].scalar === 'i32'
  })

/** Outcome of a comparison: numbers, nothing but zeros, or no number at all, as where every element is NaN. */
type Compared = 'numbers' | 'zeros' | 'nothing'

/** Runs one trial. @throws finding `evaluate.bounds` if a body does not accept the drawn data */
function tryOnce(group: CheckedGroup, kernels: ReadonlyMap<string, Kernel>, seed: number): Compared {
  const { name, graph, nodes } = group
  const random = randomFrom(seed)
  const inside = [...graph.nodes].filter((node) => nodes.includes(node as NodeOf<'op'>) || isInner(graph, node, nodes))
  const facts = graphFacts(graph, kernels)
  const dims = drawDims(graph, inside, seed, facts)
  const attrs = drawAttrs(graph, inside, kernels, random)
  const drawn = drawValues(graph, inside, kernels, dims, random, drawnPacking(graph, facts, seed))
  const values = viewed(graph, drawn)
  const revise = maskedRule(graph, nodes, kernels)
  const expected = runNodes(graph, inside, { values, dims, attrs, kernels, ...(revise === undefined ? {} : { revise }) })
  const given = { values, dims, attrs, kernels }
  const results = runInside(name, nodes, () =>
    'derived' in group ? runDerived(group.derived, expected, dims, attrs) : runInstead(graph, group.instead, given),
  )
  let compared: Compared = 'nothing'
  for (const { param, value, made } of results) {
    const wanted = expected.get(value) ?? []
    for (let at = 0; at < wanted.length; at++) {
      const [got, want] = [made[at] ?? Number.NaN, wanted[at] ?? Number.NaN]
      if (Object.is(got, want) || Math.abs(got - want) <= reordered * (1 + Math.abs(want))) {
        if (Number.isFinite(want) && compared !== 'numbers') compared = want === 0 ? 'zeros' : 'numbers'
        continue
      }
      const between = nodes.map((node) => node.name).join(', ')
      const sizes = Object.entries(dims).map(([dim, extent]) => `${dim} = ${extent}`)
      throw usageError(
        'plan.meaning',
        `group ${name}: one kernel of nodes ${between} would give another result: element ${at} of ${param} is ${got}, ` +
          `the nodes give ${want} (${sizes.join(', ')})`,
        {
          hint: 'leave a node out of the group; this is a defect of the compiler, worth a report with the bodies of these nodes',
        },
      )
    }
  }
  return compared
}

/** Runs a kernel on data that its bodies accept: a read out of bounds is then an error of the kernel. @throws usage `plan.meaning` */
function runInside<T>(name: string, nodes: DerivedGroup['nodes'], run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (!(error instanceof HeddleError) || error.code !== 'evaluate.bounds') throw error
    const between = nodes.map((node) => node.name).join(', ')
    throw usageError(
      'plan.meaning',
      `group ${name}: one kernel of nodes ${between} would read outside of a tensor where they do not: ${error.message}`,
      {
        hint: 'leave a node out of the group; this is a defect of the compiler, worth a report with the bodies of these nodes',
        cause: error,
      },
    )
  }
}

/** True if a node is a view between nodes of the group. */
const isInner = (graph: Graph, node: Graph['nodes'][number], nodes: DerivedGroup['nodes']): boolean =>
  node.kind === 'view' &&
  nodes.some((member) => reaches(graph, member, node.input)) &&
  nodes.some((member) => reads(graph, member, node.out))

const reaches = (graph: Graph, member: DerivedGroup['nodes'][number], id: ValueId): boolean =>
  (member.kind === 'op' ? Object.values(member.outputs) : [member.out]).includes(id) ||
  graph.nodes.some((node) => node.kind === 'view' && node.out === id && reaches(graph, member, node.input))

const reads = (graph: Graph, member: DerivedGroup['nodes'][number], id: ValueId): boolean =>
  inputsOf(member).includes(id) ||
  graph.nodes.some((node) => node.kind === 'view' && node.input === id && reads(graph, member, node.out))

/** Data of values that are others under another shape: the derived kernel may read either. */
function viewed(graph: Graph, drawn: ReadonlyMap<ValueId, Float64Array>): Map<ValueId, Float64Array> {
  const found = new Map(drawn)
  const views = graph.nodes.filter((node) => node.kind === 'view')
  const share = (from: ValueId, to: ValueId): void => {
    const data = found.get(from)
    if (data !== undefined && !found.has(to)) found.set(to, data)
  }
  for (const { input, out } of views.toReversed()) share(out, input)
  for (const { input, out } of views) share(input, out)
  return found
}

/** A result of the derived kernel or nodes, and the value of the graph that it must equal. */
interface Result {
  readonly param: string
  readonly value: ValueId
  readonly made: ArrayLike<number>
}

/** The result of the nodes that replace a group. */
function runInstead(graph: Graph, { values, nodes, out }: Instead, given: Given): readonly Result[] {
  const made = runNodes({ ...graph, values }, nodes, given).get(out) ?? []
  return [{ param: nodes.find((node) => node.kind === 'matmul')?.name ?? '', value: out, made }]
}

/** Outputs of the derived kernel for the values it reads. */
function runDerived(
  { kernel, inputs, outputs, attrs: bound }: Derived<Kernel | TemplateKernel>,
  values: ReadonlyMap<ValueId, ArrayLike<number>>,
  dims: Readonly<Record<string, number>>,
  attrs: Readonly<Record<string, number>>,
): readonly Result[] {
  const sizes: Record<string, number> = {}
  const shapeOf = ({ param, shape }: Binding): number[] => {
    const extents = shape.map((extent) => evaluateExtent(extent, dims))
    const tensor = kernel.tensors.find(({ name }) => name === param)
    tensor?.dims.forEach((dim, axis) => {
      sizes[dim] = extents[axis] ?? 0
    })
    return extents
  }
  outputs.forEach(shapeOf)
  const tensors = Object.fromEntries(
    inputs.map((binding) => [binding.param, { data: values.get(binding.value) ?? [], shape: shapeOf(binding) }]),
  )
  const numbers = Object.fromEntries(Object.entries(bound).map(([name, value]) => [name, attrOf(value, dims, attrs)]))
  const made: Record<string, HostTensor> = isTemplate(kernel)
    ? evaluateTemplate(kernel, tensors, sizes, numbers)
    : evaluateKernel(kernel, tensors, sizes, numbers)
  return outputs.map(({ param, value }) => ({ param, value, made: made[param]?.data ?? [] }))
}
