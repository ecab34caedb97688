/** What plans are declared with, and what a declared plan is. */
import type { Written } from '../errors.js'
import type { LayoutDecl, NamedLayouts } from './layout.js'

/** Types an edge may have: bodies compute in float32 whatever they load. */
export type EdgeType = 'f32' | 'f16' | 'bf16'

/** How the result of a node is stored, where that is not as the graph says. */
export interface EdgeConfig {
  readonly dtype?: EdgeType
  readonly layout?: LayoutDecl
}

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
  /**
   * The input of the graph that holds the length of each sequence, where it has one; a graph without an input of that name gets one
   * where it needs it, called `lengths`.
   */
  readonly lengths?: string | undefined
}

/** A node of the graph, a stack the plan makes, or a padding step beside one of them. */
type Placed<N extends string> = N | `${N}.pack` | `${N}.unpack`

/** One of these, or a step between floats and int8 behind it. */
type NodeName<N extends string> = Placed<N> | `${Placed<N>}.int8` | `${Placed<N>}.float`

/**
 * Values stored as int8. Each gets a quantising step (`node.int8`) whose attributes `site.inverse` and `site.step` the model supplies,
 * a site being the node without `.pack`; one in `dynamic` makes its scales itself. A matmul of which every operand is a weight or comes
 * from such values multiplies integers; its int32 result is brought back to floats by a step of its own (`matmul.float`).
 */
export interface Quantisation<V extends string> {
  /** Nodes and inputs of the graph. */
  readonly values?: readonly V[]
  /** Nodes and inputs whose rows are quantised as they are made, each by its own largest magnitude: nothing has to be known of them. */
  readonly dynamic?: readonly V[]
  /** Products that take their weight as int8 and what they multiply it by in floats; `product.float` scales what they sum. */
  readonly weightOnly?: readonly V[]
  /** Those of `values` that are kept as int8 only: what needs floats reads them back (`node.float`). */
  readonly only?: readonly NoInfer<V>[]
  /** Inputs of which the int8 form is supplied beside the float one (`input.int8`), and results of which both are returned. */
  readonly across?: readonly NoInfer<V>[]
  /** How int8 weights are stored; row-major where undefined. */
  readonly weights?: LayoutDecl
}

/** Which threads compute a row, and how wide: what the rules choose where a plan says nothing. `vec` is theirs where undefined. */
export type Schedule =
  | {
      readonly kind: 'rows'
      readonly team:
        | { readonly kind: 'thread'; readonly rowsPerBlock: number }
        | { readonly kind: 'warp'; readonly lanes: number; readonly rowsPerBlock: number }
        | { readonly kind: 'block'; readonly lanes: number }
      /** Chunks of `vec` values a lane keeps in registers, or `reread` when every pass reads the row again. */
      readonly chunks: number | 'reread'
      readonly vec?: number
    }
  | { readonly kind: 'elementwise'; readonly threads: number; readonly vec?: number }

export interface PlanConfig<N extends string, S extends string, I extends string = never> {
  readonly packed?: Packing
  /**
   * Stack name to nodes that do the same to different weights: matmuls of one input become one matmul of the stacked weights,
   * ops on the parts of a stack become one op on the whole. Stacked in the order given.
   */
  readonly stacked?: Readonly<Record<S, readonly N[]>>
  /** Kernel name of a group to its schedule, where the rules should not choose. Row programs and elementwise kernels have schedules. */
  readonly schedules?: Readonly<Record<string, Schedule>>
  /** Storage types of models the plan's kernels are generated for; all that their ops have where undefined. */
  readonly dtypes?: readonly EdgeType[]
  readonly quantised?: Quantisation<Placed<N | NoInfer<S>> | I>
  /**
   * Node to how its result is stored, where that is not as the graph says; both ends of the edge must be in groups. Inputs and
   * results of the graph may have a layout, which whoever runs the graph has to supply.
   */
  readonly edges?: Readonly<Partial<Record<NodeName<N | NoInfer<S>> | I | `${I}.int8`, EdgeType | EdgeConfig>>>
  /**
   * Kernel name to the nodes it fuses. A kernel used several times in a layer lists one group per occurrence: the
   * occurrences must derive the same kernel. A group with a matmul becomes a matmul kernel with the rest as its epilogue; one
   * with two matmuls around a softmax becomes an attention kernel.
   */
  readonly groups: Readonly<
    Record<string, readonly GroupName<N | NoInfer<S>, I>[] | readonly (readonly GroupName<N | NoInfer<S>, I>[])[]>
  >
  /**
   * Groups with a matmul that the matmul library computes, epilogue included, instead of a generated kernel: a bias, a residual, both,
   * or relu with or without a bias, in floats. Such a group derives no kernel: another plan may derive one of its name.
   */
  readonly library?: readonly string[]
  /**
   * Groups of one matmul alone between whose two forms `heddle tune` chooses: the library's product, or the generated kernel for the
   * sizes at which a tuning file says that it was faster.
   */
  readonly tuned?: readonly string[]
}

/** What a group may hold: inputs are no nodes, but the steps behind them are. */
type GroupName<N extends string, I extends string> = NodeName<N> | `${I}.int8` | `${I}.float`

export interface PlanDecl {
  readonly name: string
  /** Name of the graph the plan is for. */
  readonly graph: string
  readonly packed?: Packing | undefined
  readonly stacked?: readonly { readonly name: string; readonly nodes: readonly string[] }[] | undefined
  readonly dtypes?: readonly EdgeType[] | undefined
  /** Kernels of the groups with the schedules asked for them. */
  readonly schedules?: Readonly<Record<string, Schedule>> | undefined
  readonly quantised?: QuantisedDecl | undefined
  readonly edges?: readonly { readonly node: string; readonly dtype?: EdgeType; readonly layout?: string }[] | undefined
  /** Each fused kernel with its occurrences. */
  readonly groups: readonly { readonly kernel: string; readonly occurrences: readonly (readonly string[])[] }[]
  /** Names of the groups that are the matmul library's. */
  readonly library?: readonly string[] | undefined
  /** Names of the groups between whose forms measurements choose. */
  readonly tuned?: readonly string[] | undefined
  /** For what the groups are searched when CUDA is generated; undefined where they are written out. */
  readonly auto?: AutoTarget | undefined
  /** The layouts that it gives edges and int8 weights, by name. */
  readonly layouts?: NamedLayouts | undefined
  /** Where the author declared it; undefined for plans that a search or a tool makes. */
  readonly written?: Written | undefined
}

/** `Quantisation` with layouts by name. */
export interface QuantisedDecl {
  readonly values: readonly string[]
  readonly dynamic: readonly string[]
  readonly weightOnly: readonly string[]
  readonly only: readonly string[]
  readonly across: readonly string[]
  readonly weights: string
}

/** What an automatic plan is made for, by the cost model of src/fuse/search/cost.ts. */
export interface AutoTarget {
  /** A device of the cost model, such as `h200`. */
  readonly device: string
  /** Dimensions instead of those the graph says it is usually run with. */
  readonly dims?: Readonly<Record<string, number>> | undefined
  /** The storage type; f16 where undefined. */
  readonly dtype?: 'f32' | 'f16' | 'bf16' | undefined
}

export interface AutoPlanConfig<N extends string, S extends string>
  extends AutoTarget,
    Pick<PlanConfig<N, S>, 'packed' | 'stacked'> {}
