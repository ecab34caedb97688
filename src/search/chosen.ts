/** Plans from the covers that a measured search has found: those that are good at all shapes first, with the reason for each group. */
import { freshName } from '../ir/names.js'
import { kernelName } from '../ir/op_name.js'
import type { PlanDecl } from '../lang/plan.js'
import { coversOf, type Found } from './covers.js'
import { type KnownKernels, nameGroups, renamedKernel } from './kernel_names.js'
import type { SearchResult } from './measured.js'
import type { GraphProblem } from './problem.js'
import type { SpaceGroup } from './space.js'

const groupsOf = ({ forms }: GraphProblem, { variant, chosen }: Found): readonly SpaceGroup[] =>
  chosen.flatMap((at) => forms[variant]?.space.groups[at] ?? [])

/** A cover as a plan. @param known kernels of the project, whose names other groups may not have */
export function planOf(
  name: string,
  graph: { readonly name: string },
  problem: GraphProblem,
  cover: Found,
  { packed, known }: { readonly packed: PlanDecl['packed']; readonly known: KnownKernels },
): PlanDecl {
  const form = problem.forms[cover.variant]
  if (form === undefined) throw new Error('internal: a cover of no variant')
  const { candidates } = form.space
  const groups = groupsOf(problem, cover)
  const generated = nameGroups(
    candidates,
    groups.map(({ group }) => group),
    known,
  )
  const taken = new Set([...known.keys(), ...candidates.ops.keys(), ...generated.map(({ kernel }) => kernel)])
  const library = groups.flatMap(({ group }) => {
    if (group.kernel !== undefined || group.launch.graph === candidates.graph) return []
    const parts = candidates.find(group.names).map((node) => (node.kind === 'op' ? kernelName(node.op) : 'matmul'))
    const kernel = freshName(`library_${parts.join('_')}`, taken, { separator: '_' })
    taken.add(kernel)
    return [{ kernel, occurrences: [group.names] }]
  })
  return {
    ...{ name, graph: graph.name, packed, stacked: form.stacked, groups: [...generated, ...library] },
    ...(library.length === 0 ? {} : { library: library.map(({ kernel }) => kernel) }),
  }
}

/** Generated kernels of a plan that a cover has become, by name. */
export function kernelsOf(problem: GraphProblem, cover: Found, plan: PlanDecl): KnownKernels {
  const names = new Map(
    plan.groups.flatMap(({ kernel, occurrences }) => occurrences.map((nodes) => [nodes.join(), kernel] as const)),
  )
  const generated = groupsOf(problem, cover).flatMap(({ group: { names: nodes, kernel } }) => {
    const name = names.get(nodes.join())
    return kernel === undefined || name === undefined ? [] : [[name, renamedKernel(kernel, name)] as const]
  })
  return new Map(generated)
}

/** Reason for a group of a plan, at each shape. */
export interface Reason {
  readonly nodes: readonly string[]
  /** Microseconds: its own, and those of its nodes one by one. */
  readonly own: readonly number[]
  readonly apart: readonly number[]
  /** The best cover without the group: its groups that the plan does not have, and how much longer it takes. */
  readonly instead: readonly (readonly string[])[]
  readonly margin: readonly number[]
}

const micro = 1e6

/** Reasons for the groups of a cover that are more than a node of the graph. */
export function reasonsOf(problem: GraphProblem, { prices }: SearchResult, cover: Found): readonly Reason[] {
  const variant = problem.problem.variants[cover.variant]
  const form = problem.forms[cover.variant]
  if (variant === undefined || form === undefined) throw new Error('internal: a cover of no variant')
  const shapes = problem.problem.shapes.map((_, shape) => shape)
  const secondsOf = (at: number, shape: number): number => {
    const launch = variant.groups[at]?.launches[shape]
    return launch === undefined ? Number.POSITIVE_INFINITY : prices.price(launch).seconds
  }
  const aloneOf = (node: number, shape: number): number =>
    Math.min(
      ...variant.groups.flatMap(({ members }, at) => (members.length === 1 && members[0] === node ? [secondsOf(at, shape)] : [])),
    )
  const total = (found: Found, shape: number): number => found.chosen.reduce((sum, at) => sum + secondsOf(at, shape), 0)
  return cover.chosen.flatMap((at): Reason[] => {
    const group = form.space.groups[at]
    if (group === undefined || group.group.launch.graph === form.space.candidates.graph) return []
    const others = shapes.map(
      (shape) =>
        coversOf(
          problem.problem,
          1,
          ({ [shape]: launch }) => (launch === undefined ? Number.POSITIVE_INFINITY : prices.price(launch).seconds),
          (of, other) => of === cover.variant && other === at,
        )[0],
    )
    const [first] = others
    const kept = new Set(groupsOf(problem, cover).map((each) => each.group.names.join()))
    return [
      {
        nodes: group.group.names,
        own: shapes.map((shape) => secondsOf(at, shape) * micro),
        apart: shapes.map(
          (shape) => (variant.groups[at]?.members ?? []).reduce((sum, node) => sum + aloneOf(node, shape), 0) * micro,
        ),
        instead:
          first === undefined
            ? []
            : groupsOf(problem, first).flatMap((each) => (kept.has(each.group.names.join()) ? [] : [each.group.names])),
        margin: shapes.map((shape) => {
          const other = others[shape]
          return other === undefined ? Number.POSITIVE_INFINITY : (other.cost - total(cover, shape)) * micro
        }),
      },
    ]
  })
}

/** Names of nodes, those of a stack by the nodes that it stacks. */
const unstacked = (names: readonly string[], stacked: PlanDecl['stacked'] = []): string => {
  const stacks = new Map(stacked.map(({ name, nodes }) => [name, `[${nodes.join()}]`]))
  return names
    .map((name) => stacks.get(name) ?? name)
    .sort()
    .join()
}

/** The cover that a plan is; undefined if one of its groups is none of the problem, such as one over packed rows. */
export function coverOf({ forms, problem }: GraphProblem, plan: PlanDecl): Found | undefined {
  for (const [variant, { stacked, space }] of forms.entries()) {
    const places = new Map(
      space.groups.map(({ group, form }, at) => {
        const isAlone = group.launch.graph === space.candidates.graph
        return [`${isAlone ? 'alone' : form} ${unstacked(group.names, stacked)}`, at]
      }),
    )
    const grouped = plan.groups.flatMap(({ kernel, occurrences }) =>
      occurrences.map((names) => {
        const form = plan.library?.includes(kernel) === true ? 'library' : 'generated'
        return places.get(`${form} ${unstacked(names, plan.stacked)}`)
      }),
    )
    const known = grouped.filter((at) => at !== undefined)
    const taken = new Set(known.flatMap((at) => problem.variants[variant]?.groups[at]?.members ?? []))
    const alone = space.candidates.nodes.flatMap(({ name }, node) =>
      taken.has(node) ? [] : [places.get(`alone ${unstacked([name], stacked)}`)],
    )
    const chosen = [...known, ...alone.filter((at) => at !== undefined)].sort((a, b) => a - b)
    const covered = chosen.flatMap((at) => problem.variants[variant]?.groups[at]?.members ?? [])
    const isWhole = known.length === grouped.length && covered.length === space.candidates.nodes.length
    if (isWhole && new Set(covered).size === covered.length) return { variant, chosen, cost: 0 }
  }
  return undefined
}

/** True if plans have the same groups, forms and stacks, whatever the names of their kernels. */
export function samePlan(a: PlanDecl, b: PlanDecl): boolean {
  const parts = ({ groups, library = [], stacked }: PlanDecl): string => {
    const own = groups.flatMap(({ kernel, occurrences }) =>
      occurrences.map((nodes) => `${library.includes(kernel)} ${unstacked(nodes, stacked)}`),
    )
    return own.sort().join('\n')
  }
  return parts(a) === parts(b)
}
