/**
 * Declaring a fusion plan: which nodes of a graph become one kernel. Node names are checked by the TypeScript compiler,
 * since a graph's type carries them. A plan never changes what is computed, only how it is grouped.
 */
import type { GraphDecl } from './graph.js'

export interface PlanConfig<N extends string> {
  /**
   * Kernel name to the nodes it fuses. A kernel used several times in a layer lists one group per occurrence: the
   * occurrences must derive the same kernel.
   */
  readonly groups: Readonly<Record<string, readonly N[] | readonly (readonly N[])[]>>
}

export interface PlanDecl {
  readonly name: string
  /** Name of the graph the plan is for. */
  readonly graph: string
  /** Each fused kernel with its occurrences. */
  readonly groups: readonly { readonly kernel: string; readonly occurrences: readonly (readonly string[])[] }[]
}

/** Declares a plan over a graph: `plan('ft-v1', encoderLayer, { groups: { bias_gelu: ['fc1Bias', 'gelu'] } })`. */
export function plan<const N extends string>(name: string, graph: GraphDecl<N>, config: PlanConfig<N>): PlanDecl {
  const nested = (nodes: readonly N[] | readonly (readonly N[])[]): nodes is readonly (readonly N[])[] => Array.isArray(nodes[0])
  return {
    name,
    graph: graph.name,
    groups: Object.entries<readonly N[] | readonly (readonly N[])[]>(config.groups).map(([kernel, nodes]) => ({
      kernel,
      occurrences: nested(nodes) ? nodes : [nodes],
    })),
  }
}
