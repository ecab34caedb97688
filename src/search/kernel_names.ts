/**
 * Names for the groups that a search found. A group that derives a kernel of the project takes its name, so that the same source is not generated
 * twice; the others are named after their ops.
 */

import { type PlannedKernel, sameKernel } from '../fuse/planned_kernel.js'
import { freshName } from '../ir/names.js'
import { kernelName } from '../ir/op_name.js'
import type { MatmulFactor, MatmulKernel, MatmulProduct, ReducedRows } from '../ir/product.js'
import { isTemplate, type TemplateKernel } from '../ir/template.js'
import type { PlanDecl } from '../lang/plan.js'
import type { Candidate, Candidates } from './candidates.js'

/** Kernels of the project by name: ops, and kernels that its other plans derive. */
export type KnownKernels = ReadonlyMap<string, PlannedKernel>

/** The groups of a plan, each kernel once with all its occurrences. Nodes alone remain nodes. */
export function nameGroups(
  candidates: Candidates,
  groups: readonly (Candidate & { readonly kind: 'legal' })[],
  known: KnownKernels = new Map(),
): PlanDecl['groups'] {
  const taken = new Map<string, PlannedKernel>([...known, ...candidates.ops])
  const named = new Map<string, (readonly string[])[]>()
  for (const { names, kernel, launch } of groups) {
    // A node alone keeps its place in the graph.
    if (kernel === undefined || launch.graph === candidates.graph) continue
    const name = nameOf(candidates, names, kernel, taken)
    taken.set(name, renamedKernel(kernel, name))
    named.set(name, [...(named.get(name) ?? []), names])
  }
  return [...named].map(([kernel, occurrences]) => ({ kernel, occurrences }))
}

function nameOf(
  candidates: Candidates,
  names: readonly string[],
  kernel: PlannedKernel,
  taken: ReadonlyMap<string, PlannedKernel>,
): string {
  for (const [name, other] of taken) {
    // An op is run as it is; a fused kernel that equals one keeps its own name, since plans may not derive ops.
    if (!candidates.ops.has(name) && sameKernel(renamedKernel(kernel, name), other)) return name
  }
  return freshName(`auto_${ops(candidates, names, kernel).join('_')}`, new Set(taken.keys()), { separator: '_' })
}

/** Templates that have a name as a whole; the others are named after their ops. */
const wholeNames: Readonly<Record<TemplateKernel['kind'], string | undefined>> = {
  matmul: undefined,
  attention: 'attention',
  'decode attention': 'decode_attention',
}

/** Parts of a kernel's name, in order: each op once, attention as a whole. */
function ops(candidates: Candidates, names: readonly string[], kernel: PlannedKernel): readonly string[] {
  const whole = isTemplate(kernel) ? wholeNames[kernel.kind] : undefined
  if (whole !== undefined) return [whole]
  return [...new Set(candidates.find(names).map((node) => (node.kind === 'op' ? kernelName(node.op) : 'matmul')))]
}

/** The kernel that is derived under another name of its group. */
export function renamedKernel(kernel: PlannedKernel, name: string): PlannedKernel {
  if (!isTemplate(kernel)) return { ...kernel, name }
  switch (kernel.kind) {
    case 'matmul':
      return renamedMatmul(kernel, name)
    case 'attention':
    case 'decode attention':
      return { ...kernel, name }
  }
}

function renamedMatmul(kernel: MatmulKernel, name: string): MatmulKernel {
  const factor = (of: MatmulFactor): MatmulFactor =>
    of.prologue === undefined ? of : { ...of, prologue: { ...of.prologue, name } }
  const [first, ...others] = kernel.products
  const product = (of: MatmulProduct): MatmulProduct => ({ ...of, b: factor(of.b) })
  return {
    ...kernel,
    name,
    a: factor(kernel.a),
    products: [product(first), ...others.map(product)],
    epilogue: { ...kernel.epilogue, name },
    ...(kernel.partials === undefined ? {} : { partials: { ...kernel.partials, name } }),
    ...(kernel.reduced === undefined ? {} : { reduced: renamedRows(kernel.reduced, name) }),
  }
}

const renamedRows = (reduced: ReducedRows, name: string): ReducedRows => ({
  ...reduced,
  partials: { ...reduced.partials, name },
  rest: { ...reduced.rest, name: `${name}_rest` },
})
