/** Planned graphs of a program, and their names in the compiled program. */
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

  /** Returns the planned graph: the graph rewritten by the plan. @throws usage `program.graph` for two graphs of one name */
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

  /** Name of a graph in the compiled program. Conversions of different shapes share a name and are numbered. */
  keyOf(graph: Graph): string {
    for (let twin = 1; ; twin++) {
      const key = twin === 1 ? graph.name : `${graph.name} ${twin}`
      const known = this.all[key]
      this.all[key] = known ?? graph
      if (known === undefined || known === graph || JSON.stringify(known) === JSON.stringify(graph)) return key
    }
  }
}

/** Name of a value among a graph's inputs or outputs. */
export const nameOf = (values: Readonly<Record<string, ProgramValueId>>, id: ProgramValueId): string | undefined =>
  Object.keys(values).find((name) => values[name] === id)

/** Name of the node that computes a value, ignoring views, or of the input if the value is one. */
export function makerOf({ nodes, inputs }: Pick<Graph, 'nodes' | 'inputs'>, id: ValueId | undefined): string | undefined {
  const node = nodes.find((each) => id !== undefined && outputsOf(each).includes(id))
  if (node?.kind === 'view') return makerOf({ nodes, inputs }, node.input)
  return node?.name ?? Object.keys(inputs).find((name) => inputs[name] === id)
}
