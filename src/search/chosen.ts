/** Plans from the covers that a measured search has found: those that are good at all shapes first, with the reason for each group. */
import { freshName } from '../ir/names.js'
import { kernelName } from '../ir/op_name.js'
import type { PlanDecl } from '../lang/plan.js'
import { type KnownKernels, nameGroups } from './kernel_names.js'
import { coversOf, type Found, launchesOf, type SearchResult } from './measured.js'
import type { GraphProblem } from './problem.js'
import type { SpaceGroup } from './space.js'

/** A cover, and its seconds at each shape by the prices of the search. */
export interface Scored {
  readonly cover: Found
  readonly seconds: readonly number[]
  /** Geometric mean over the shapes of its seconds in relation to the best cover of each. */
  readonly ratio: number
}

const idOf = ({ variant, chosen }: Found): string => `${variant}:${chosen.join()}`

/** The covers that a search found at any shape, the best over all shapes first. */
export function scored({ problem }: GraphProblem, { covers, prices }: SearchResult): readonly Scored[] {
  const all = new Map(covers.flat().map((cover) => [idOf(cover), cover]))
  const least = covers.map(([best]) => best?.cost ?? Number.NaN)
  return [...all.values()]
    .map((cover): Scored => {
      const seconds = problem.shapes.map((_, shape) =>
        launchesOf(problem, shape, cover).reduce((sum, launch) => sum + prices.price(launch).seconds, 0),
      )
      const logs = seconds.map((each, shape) => Math.log(each / (least[shape] ?? Number.NaN)))
      return { cover, seconds, ratio: Math.exp(logs.reduce((sum, each) => sum + each, 0) / logs.length) }
    })
    .sort((a, b) => a.ratio - b.ratio)
}

/** Largest ratio to the best plan of a shape at which one plan for all shapes is preferred. */
export const oneForAll = 1.02

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
          shape,
          1,
          (launch) => prices.price(launch).seconds,
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

/** True if plans have the same groups, forms and stacks, whatever the names of their kernels. */
export function samePlan(a: PlanDecl, b: PlanDecl): boolean {
  const parts = ({ groups, library = [], stacked = [] }: PlanDecl): string => {
    const named = new Map(stacked.map(({ name, nodes }) => [name, `[${nodes.join()}]`]))
    const own = groups.flatMap(({ kernel, occurrences }) =>
      occurrences.map((nodes) => `${library.includes(kernel)} ${nodes.map((node) => named.get(node) ?? node).sort()}`),
    )
    return own.sort().join('\n')
  }
  return parts(a) === parts(b)
}
