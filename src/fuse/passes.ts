/**
 * The passes of a plan over its graph, in order. After them groups become kernels (apply.ts), which are verified and checked against the bodies
 * of their nodes (check/derived.ts), and then scheduled: `schedulePasses` of src/schedule/map.ts. Every pass here is verified when it ends, and
 * `heddle inspect --passes PLAN` prints the graph after each.
 */
import { concerning } from '../errors.js'
import type { Graph } from '../ir/graph.js'
import type { Kernel } from '../ir/kernel.js'
import { verifyGraph } from '../ir/verify_graph.js'
import type { PlanDecl } from '../lang/plan.js'
import { withoutDefect } from './defects.js'
import { placeEdges } from './graph/edges.js'
import type { LayoutsByName } from './graph/edit.js'
import { packGraph } from './graph/pack.js'
import { quantiseGraph } from './graph/quantise.js'
import { stackGraph } from './graph/stack.js'

export interface GraphPass {
  readonly name: string
  /** Key of the plan that configures the pass. */
  readonly key: keyof PlanDecl
  readonly run: (graph: Graph, plan: PlanDecl, ops: ReadonlyMap<string, Kernel>, layouts: LayoutsByName) => Graph
}

export const graphPasses: readonly GraphPass[] = [
  {
    name: 'remove padding',
    key: 'packed',
    run: (graph, { packed }, ops) => (packed === undefined ? graph : packGraph(graph, packed, ops)),
  },
  { name: 'stack', key: 'stacked', run: stackGraph },
  { name: 'quantise', key: 'quantised', run: quantiseGraph },
  { name: 'store edges', key: 'edges', run: (graph, plan, _, layouts) => placeEdges(graph, plan, layouts) },
]

/**
 * The graph whose nodes a plan's groups name: padding removed, nodes stacked, values quantised, edges stored as the plan states.
 * @param ops kernels of the graph's ops, and of those that packing, stacking and quantising add, by name
 * @param see is called with the graph after each pass
 * @throws usage `plan.node` for a name the graph lacks, `plan.packed`, `plan.stack`, `plan.quantised`, `plan.edge`, `plan.defect`
 */
export function prepareGraph(
  original: Graph,
  plan: PlanDecl,
  ops: ReadonlyMap<string, Kernel>,
  layouts: LayoutsByName = new Map(),
  see: (pass: string, graph: Graph) => void = () => undefined,
): Graph {
  return graphPasses.reduce((graph, { name, key, run }) => {
    const made = concerning({ path: [key] }, () =>
      withoutDefect(`plan ${plan.name}`, () => {
        const changed = run(graph, plan, ops, layouts)
        verifyGraph(changed, name, ops)
        return changed
      }),
    )
    see(name, made)
    return made
  }, original)
}
