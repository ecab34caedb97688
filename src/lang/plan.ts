/**
 * Declaring a fusion plan: which nodes of a graph become one kernel, which of them are stacked into one, and whether the
 * tokens are packed. Node names are checked by the TypeScript compiler, since a graph's type carries them. A plan never
 * changes what is computed for a token, only how it is grouped and stored.
 */
import type { GraphDecl } from './graph.js'

/** Types an edge may have: bodies compute in float32 whatever they load. */
export type EdgeType = 'f32' | 'f16' | 'bf16'

/**
 * Removal of padding: every value with one row a token of a padded batch (extent `batch*seq`) is stored with one row a
 * token, sequence after sequence. Where the graph needs padded tokens, they are restored (`node.unpack`, before the node) and
 * removed again (`node.pack`, behind it).
 */
export interface Packing {
  /** Names of the dimensions: sequences, positions, and packed rows. */
  readonly batch: string
  readonly seq: string
  readonly tokens: string
}

/** A node of the graph, a stack the plan makes, or a padding step beside one of them. */
type NodeName<N extends string> = N | `${N}.pack` | `${N}.unpack`

export interface PlanConfig<N extends string, S extends string> {
  readonly packed?: Packing
  /**
   * Stack name to nodes that do the same to different weights: matmuls of one input become one matmul of the stacked weights,
   * ops on the parts of a stack become one op on the whole. Stacked in the order given.
   */
  readonly stacked?: Readonly<Record<S, readonly N[]>>
  /** Node to the type its result is stored in, where that is not the model's; both ends of the edge must be in groups. */
  readonly edges?: Readonly<Partial<Record<NodeName<N | NoInfer<S>>, EdgeType>>>
  /**
   * Kernel name to the nodes it fuses. A kernel used several times in a layer lists one group per occurrence: the
   * occurrences must derive the same kernel. A group with a matmul becomes a matmul kernel with the rest as its epilogue; one
   * with two matmuls around a softmax becomes an attention kernel.
   */
  readonly groups: Readonly<
    Record<string, readonly NodeName<N | NoInfer<S>>[] | readonly (readonly NodeName<N | NoInfer<S>>[])[]>
  >
}

export interface PlanDecl {
  readonly name: string
  /** Name of the graph the plan is for. */
  readonly graph: string
  readonly packed?: Packing | undefined
  readonly stacked?: readonly { readonly name: string; readonly nodes: readonly string[] }[] | undefined
  readonly edges?: readonly { readonly node: string; readonly dtype: EdgeType }[] | undefined
  /** Each fused kernel with its occurrences. */
  readonly groups: readonly { readonly kernel: string; readonly occurrences: readonly (readonly string[])[] }[]
  /** For what the groups are searched when CUDA is generated; undefined where they are written out. */
  readonly auto?: AutoTarget | undefined
}

/** What an automatic plan is made for, by the cost model of src/fuse/cost.ts. */
export interface AutoTarget {
  /** A device of the cost model, such as `h200`. */
  readonly device: string
  /** The graph's dimensions; BERT-base with 32 sequences of 128 tokens where undefined. */
  readonly dims?: Readonly<Record<string, number>> | undefined
  /** The storage type; f16 where undefined. */
  readonly dtype?: 'f32' | 'f16' | 'bf16' | undefined
}

export interface AutoPlanConfig<N extends string, S extends string>
  extends AutoTarget,
    Pick<PlanConfig<N, S>, 'packed' | 'stacked'> {}

/** Declares a plan over a graph: `plan('ft-v1', encoderLayer, { groups: { bias_gelu: ['fc1Bias', 'gelu'] } })`. */
export function plan<const N extends string, const S extends string = never>(
  name: string,
  graph: GraphDecl<N>,
  config: PlanConfig<N, S>,
): PlanDecl {
  const nested = (nodes: readonly string[] | readonly (readonly string[])[]): nodes is readonly (readonly string[])[] =>
    Array.isArray(nodes[0])
  return {
    name,
    graph: graph.name,
    packed: config.packed,
    stacked: stacksOf(config.stacked),
    edges: Object.entries<EdgeType | undefined>(config.edges ?? {}).flatMap(([node, dtype]) =>
      dtype === undefined ? [] : [{ node, dtype }],
    ),
    groups: Object.entries<readonly string[] | readonly (readonly string[])[]>(config.groups).map(([kernel, nodes]) => ({
      kernel,
      occurrences: nested(nodes) ? nodes : [nodes],
    })),
  }
}

/**
 * Declares a plan whose groups are found by the cost model when CUDA is generated; packing and stacks are given, not found:
 * `autoPlan('auto', encoderLayer, { device: 'h200' })`.
 */
export function autoPlan<const N extends string, const S extends string = never>(
  name: string,
  graph: GraphDecl<N>,
  { packed, stacked, device, dims, dtype }: AutoPlanConfig<N, S>,
): PlanDecl {
  return { name, graph: graph.name, packed, stacked: stacksOf(stacked), groups: [], auto: { device, dims, dtype } }
}

const stacksOf = (stacks: Readonly<Record<string, readonly string[]>> = {}): NonNullable<PlanDecl['stacked']> =>
  Object.entries(stacks).map(([name, nodes]) => ({ name, nodes }))
