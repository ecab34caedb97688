/** Graphs of a program as a plan rewrites them, and their names in the compiled program. */
import { usageError } from '../errors.js'
import { type Graph, outputsOf, type ValueId } from '../ir/graph.js'
import type { ProgramValueId } from '../ir/program.js'
import type { ModelPlan } from './plans.js'

export class PlanGraphs {
  readonly #program: string
  readonly #plan: ModelPlan
  readonly #planned = new Map<string, { readonly graph: Graph; readonly planned: Graph }>()
  /** Every applied graph, by its name in the compiled program. */
  readonly all: Record<string, Graph> = {}

  constructor(program: string, plan: ModelPlan) {
    this.#program = program
    this.#plan = plan
  }

  /** A graph as the plan rewrites it. @throws usage `program.graph` for two graphs of one name */
  planned(graph: Graph): Graph {
    const known = this.#planned.get(graph.name)
    if (known === undefined) {
      const planned = this.#plan.rewrite(graph)
      this.#planned.set(graph.name, { graph, planned })
      return planned
    }
    if (known.graph !== graph && JSON.stringify(known.graph) !== JSON.stringify(graph)) {
      throw usageError('program.graph', `${this.#program}: two graphs are called ${graph.name}`, {
        hint: 'rename one: plans know graphs by their names',
      })
    }
    return known.planned
  }

  /** Name of a graph in the compiled program. Steps between forms of different shapes share a name, and get numbers. */
  keyOf(graph: Graph): string {
    for (let twin = 1; ; twin++) {
      const key = twin === 1 ? graph.name : `${graph.name} ${twin}`
      const known = this.all[key]
      this.all[key] = known ?? graph
      if (known === undefined || known === graph || JSON.stringify(known) === JSON.stringify(graph)) return key
    }
  }
}

/** The name under which a graph takes or gives a value. */
export const nameOf = (values: Readonly<Record<string, ProgramValueId>>, id: ProgramValueId): string | undefined =>
  Object.keys(values).find((name) => values[name] === id)

/** The node that makes a value, through views, or the input that the value is. */
export function makerOf({ nodes, inputs }: Pick<Graph, 'nodes' | 'inputs'>, id: ValueId | undefined): string | undefined {
  const node = nodes.find((each) => id !== undefined && outputsOf(each).includes(id))
  if (node?.kind === 'view') return makerOf({ nodes, inputs }, node.input)
  return node?.name ?? Object.keys(inputs).find((name) => inputs[name] === id)
}
