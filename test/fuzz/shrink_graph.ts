/** Makes a graph that fails under a plan smaller: its end is cut off, and groups lose nodes, as long as something still fails in the same way. */
import { type GraphDesc, type PlanDesc, readBy } from './graph_describe.js'
import type { DeviceKind } from './house.js'
import { type GraphFailure, type GraphSubject, runGraphs } from './run_graphs.js'

const rounds = 6

/** The graph up to a node. */
export function cut(graph: GraphDesc, output: string): GraphDesc {
  const used = new Set([output])
  const nodes = graph.nodes.toReversed().filter((node) => {
    if (used.has(node.name)) for (const name of readBy(node)) used.add(name)
    return used.has(node.name)
  })
  return { ...graph, nodes: nodes.toReversed(), given: graph.given.filter(({ name }) => used.has(name)), outputs: [output] }
}

/** Plans with fewer groups, and groups without their first or last node. */
export function fewer(plan: PlanDesc): PlanDesc[] {
  const without = plan.groups.length > 1 ? plan.groups.map((group) => ({ ...plan, groups: [group], library: [] })) : []
  const shorter = plan.groups.flatMap((group, at) =>
    group.length < 2
      ? []
      : [group.slice(1), group.slice(0, -1)].map((nodes) => ({ ...plan, groups: plan.groups.with(at, nodes) })),
  )
  const { stacked: _, ...apart } = plan
  const { isPacked: __, ...padded } = plan
  const { stored: ___, ...plain } = plan
  const alike = [plan.stacked && apart, plan.isPacked && padded, plan.stored && plain].flatMap((each) => (each ? [each] : []))
  return [...alike, ...without, ...shorter]
}

/** The plan restricted to the remaining nodes of a graph. */
function within({ nodes }: GraphDesc, plan: PlanDesc): PlanDesc {
  const has = (name: string): boolean =>
    (plan.stacked?.[name] ?? [name.split('.')[0]]).every((each) => nodes.some((node) => node.name === each))
  const groups = plan.groups.map((group) => group.filter(has))
  return groups.every((group, at) => group.length === plan.groups[at]?.length)
    ? plan
    : { ...plan, groups: groups.filter((group) => group.length > 0), library: [] }
}

function candidates({ graph, plans }: GraphSubject): (readonly [GraphDesc, PlanDesc | undefined])[] {
  const [plan] = plans
  const cuts = graph.nodes.slice(0, -1).map(({ name }) => cut(graph, name))
  return [
    ...cuts.map((each) => [each, plan && within(each, plan)] as const),
    ...(plan === undefined ? [] : fewer(plan).map((each) => [graph, each] as const)),
  ]
}

const sizeOf = ({ graph, plans }: GraphSubject): number =>
  JSON.stringify([graph.nodes, graph.given, plans[0]?.groups ?? []]).length

/** The smallest graph and plan found that fail as the given ones do. */
export async function shrinkGraph(kind: DeviceKind, failure: GraphFailure): Promise<GraphFailure> {
  const { graph, plans, seed } = failure.subject
  let best: GraphFailure = { ...failure, subject: { graph, seed, plans: plans.filter(({ name }) => name === failure.plan) } }
  for (let round = 0; round < rounds; round++) {
    const subjects = candidates(best.subject).map(([each, plan], at): GraphSubject => {
      const renamed = {
        ...each,
        name: `net_${at}`,
        nodes: each.nodes.map((node) =>
          node.kind === 'op' ? { ...node, op: { ...node.op, name: node.op.name.replace(/^net_\d+/, `net_${at}`) } } : node,
        ),
      }
      return {
        graph: renamed,
        seed,
        plans: plan === undefined || plan.groups.length === 0 ? [] : [{ ...plan, name: `plan_${at}_0` }],
      }
    })
    if (subjects.length === 0) break
    const { failures } = await runGraphs(kind, subjects)
    const isAlike = (each: GraphFailure): boolean =>
      each.kind === failure.kind && (each.plan === 'unfused') === (failure.plan === 'unfused')
    const [next] = failures
      .filter((each) => isAlike(each) && sizeOf(each.subject) < sizeOf(best.subject))
      .toSorted((a, b) => sizeOf(a.subject) - sizeOf(b.subject))
    if (next === undefined) break
    best = next
  }
  return best
}
