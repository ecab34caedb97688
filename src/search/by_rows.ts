/**
 * Plans by numbers of rows. Every plan is applied by itself; a graph whose plan names others for few rows then carries their graphs. Which one runs is
 * decided when a program is built for given sizes, so tensors are loaded once: all of them take the same inputs and weights, in the same storage.
 */
import { concerning, inTurn, usageError } from '../errors.js'
import { getOwn } from '../ir/get_own.js'
import type { ByRows, FewRows, Graph, ValueId } from '../ir/graph.js'
import { evaluateExtent, multiplyExtents, printShape } from '../ir/shape.js'
import type { PlanDecl } from '../lang/plan.js'
import { knownHint } from '../nearest.js'
import { subjectOf } from './resolve.js'

/** Planned graphs by plan and graph. */
type Planned = Readonly<Record<string, Readonly<Record<string, Graph>>>>

/** Adds to graphs those that run instead of them at few rows. @throws usage `plan.byRows` */
export function withFewRows(plans: readonly PlanDecl[], planned: Planned): Planned {
  const found = new Map<Graph, Graph>()
  inTurn(
    plans.map((plan) => () => {
      const graph = getOwn(getOwn(planned, plan.name) ?? {}, plan.graph)
      if (graph === undefined || plan.byRows === undefined) return
      const { byRows } = plan
      concerning(subjectOf(plan), () => found.set(graph, { ...graph, byRows: chosen({ plan, graph, plans, planned }, byRows) }))
    }),
  )
  if (found.size === 0) return planned
  const graphsOf = (graphs: Readonly<Record<string, Graph>>): Record<string, Graph> =>
    Object.fromEntries(Object.entries(graphs).map(([name, graph]) => [name, found.get(graph) ?? graph]))
  return Object.fromEntries(Object.entries(planned).map(([name, graphs]) => [name, graphsOf(graphs)]))
}

interface Choosing {
  readonly plan: PlanDecl
  readonly graph: Graph
  readonly plans: readonly PlanDecl[]
  readonly planned: Planned
}

function chosen({ plan, graph, plans, planned }: Choosing, byRows: NonNullable<PlanDecl['byRows']>): ByRows {
  const others = plans.filter((each) => each.graph === plan.graph && each.byRows === undefined)
  const few = byRows.map(({ most, plan: name }): FewRows => {
    const about = { path: ['byRows', String(most)] }
    const other = others.find((each) => each.name === name)
    const instead = getOwn(getOwn(planned, name) ?? {}, plan.graph)
    if (other === undefined || instead === undefined) {
      const known = others.map((each) => each.name)
      throw usageError('plan.byRows', `plan ${plan.name}: there is no plan ${name} of ${plan.graph} to run at few rows`, {
        hint: `plans of this graph without byRows: ${knownHint(name, known)}; add it to the list plans that the specs export`,
        about,
      })
    }
    const [expected, got] = differing(graph, instead) ?? []
    if (expected !== undefined) {
      throw usageError('plan.byRows', `plan ${name} cannot run in place of ${plan.name}: expected ${expected}, got ${got}`, {
        hint: 'give both plans the same stacked, packed, quantised and edges at inputs and results: tensors are loaded once for both',
        about,
      })
    }
    return { most, plan: name, graph: instead }
  })
  return { rows: rowsOf(plan, graph), few }
}

/** Number of rows of a graph: all axes of its first input but the last; undefined if it has one axis or none. */
export function rowsIn({ inputs, values }: Graph): ByRows['rows'] | undefined {
  const shape = values[Object.values(inputs)[0] ?? -1]?.shape ?? []
  return shape.length > 1 ? multiplyExtents(shape.slice(0, -1)) : undefined
}

/** @throws usage `plan.byRows` for a graph without rows */
function rowsOf(plan: PlanDecl, graph: Graph): ByRows['rows'] {
  const rows = rowsIn(graph)
  if (rows !== undefined) return rows
  const [name = '', id = -1] = Object.entries(graph.inputs)[0] ?? []
  const shape = graph.values[id]?.shape ?? []
  throw usageError(
    'plan.byRows',
    `plan ${plan.name}: input ${name} of ${plan.graph} has no rows: its shape is ${printShape(shape) || 'that of a scalar'}`,
    {
      hint: 'rows are counted in the first input of the graph: all of its axes but the last',
      about: { path: ['byRows'] },
    },
  )
}

/**
 * The plan that runs in place of another at given sizes; undefined if that one runs itself.
 * @param plans of the same graph @param planned the graph under the plan @throws usage `plan.byRows`, `graph.dim`
 */
export function planAt(
  plan: PlanDecl,
  plans: readonly PlanDecl[],
  planned: () => Graph,
  dims: Readonly<Record<string, number>>,
): PlanDecl | undefined {
  if (plan.byRows === undefined) return undefined
  const rows = evaluateExtent(rowsOf(plan, planned()), dims)
  const few = plan.byRows.find(({ most }) => rows <= most)
  return plans.find(({ name }) => name === few?.plan)
}

/** Types and shapes of a graph by names that its caller uses. */
function seen(graph: Graph): ReadonlyMap<string, string> {
  const values = (what: string, ids: Readonly<Record<string, ValueId>>) =>
    Object.entries(ids).map(([name, id]) => {
      const { dtype = '', shape = [], layout = '' } = graph.values[id] ?? {}
      const type = typeof dtype === 'string' ? dtype : dtype.param
      return [`${what} ${name}`, `${type} [${printShape(shape)}] in layout ${layout}`] as const
    })
  const { stacked = {}, steps = {}, scales = {}, folds = [], int8, attrs, packing } = graph
  return new Map([
    ...values('input', graph.inputs),
    ...values('weight', graph.weights),
    ...values('output', graph.outputs),
    ...Object.entries(stacked).map(([name, parts]) => [`stack ${name}`, `of ${parts.join(', ')}`] as const),
    ...Object.entries(steps).map(([name, of]) => [`scales ${name}`, `of ${of.weight}, ${of.times ?? 'as they are'}`] as const),
    ...Object.entries(scales).map(([name, { site, as }]) => [`scale ${name}`, `${as} of ${site}`] as const),
    ...attrs.map((name) => [`attribute ${name}`, 'a number'] as const),
    ['int8 inputs and outputs', JSON.stringify(int8 ?? {})],
    ['padding', packing === undefined ? 'kept' : `removed: ${printShape([packing.batch, packing.seq, packing.tokens])}`],
    ['scalable channels', JSON.stringify(folds)],
  ])
}

/** The first difference between the inputs, weights and outputs of two graphs, in words. */
function differing(a: Graph, b: Graph): readonly [expected: string, got: string] | undefined {
  const [first, second] = [seen(a), seen(b)]
  const name = [...first.keys(), ...second.keys()].find((each) => first.get(each) !== second.get(each))
  if (name === undefined) return undefined
  const told = (what: string | undefined): string => (what === undefined ? `no ${name}` : `${name} ${what}`)
  return [told(first.get(name)), told(second.get(name))]
}
