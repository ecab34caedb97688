/** Types of the configuration of plans, and of declared plans. */
import type { Written } from '../errors.js'
import type { LayoutDecl, NamedLayouts } from './layout.js'

/** Types that an edge may have: bodies compute in float32 for all of them. */
export type EdgeType = 'f32' | 'f16' | 'bf16'

/** Storage of a node's result, where it differs from the graph. */
export interface EdgeConfig {
  readonly dtype?: EdgeType
  readonly layout?: LayoutDecl
}

/**
 * Removal of padding: every value with one row per token of a padded batch (extent `batch*seq`) is stored with one row per actual
 * token, sequence after sequence. Where the graph needs padded tokens, they are restored (`node.unpack`, before the node) and
 * removed again (`node.pack`, after it).
 */
export interface Packing {
  /** Names of the dimensions: sequences, positions, and packed rows. */
  readonly batch: string
  readonly seq: string
  readonly tokens: string
  /**
   * The input of the graph with the length of each sequence, if it has one; a graph without an input of that name gets one
   * if it needs it, called `lengths`.
   */
  readonly lengths?: string | undefined
}

/** A node of the graph, a stack of the plan, or a padding step before or after one of them. */
type Placed<N extends string> = N | `${N}.pack` | `${N}.unpack`

/** One of these, or a conversion between floats and int8 after it. */
type NodeName<N extends string> = Placed<N> | `${Placed<N>}.int8` | `${Placed<N>}.float`

/**
 * Values stored as int8. Each gets a quantising node (`node.int8`) whose attributes `site.inverse` and `site.step` the model supplies,
 * a site being the node without `.pack`; one in `dynamic` computes its scales itself. A matmul whose operands are all weights or derived
 * from such values multiplies integers; a separate node (`matmul.float`) converts its int32 result to floats.
 */
export interface Quantisation<V extends string> {
  /** Nodes and inputs of the graph. */
  readonly values?: readonly V[]
  /** Nodes and inputs whose rows are quantised as they are computed, each by its own largest magnitude: they need no calibration. */
  readonly dynamic?: readonly V[]
  /** Matmuls with an int8 weight and a float activation; `matmul.float` scales their sums. */
  readonly weightOnly?: readonly V[]
  /** Those of `values` that are stored as int8 only: nodes that need floats convert them back (`node.float`). */
  readonly only?: readonly NoInfer<V>[]
  /** Inputs whose int8 form is supplied in addition to the float one (`input.int8`), and results of which both are returned. */
  readonly across?: readonly NoInfer<V>[]
  /** Layout of int8 weights; row-major if undefined. */
  readonly weights?: LayoutDecl
}

/** Threads that compute a row, and the width of their accesses. The rules choose a schedule where a plan states none, and `vec` if undefined. */
export type Schedule =
  | {
      readonly kind: 'rows'
      readonly team:
        | { readonly kind: 'thread'; readonly rowsPerBlock: number }
        | { readonly kind: 'warp'; readonly lanes: number; readonly rowsPerBlock: number }
        | { readonly kind: 'block'; readonly lanes: number }
      /** Chunks of `vec` values per lane in registers, or `reread` if every pass reads the row again. */
      readonly chunks: number | 'reread'
      readonly vec?: number
    }
  | { readonly kind: 'elementwise'; readonly threads: number; readonly vec?: number }

export interface PlanConfig<N extends string, S extends string, I extends string = never> {
  readonly packed?: Packing
  /**
   * Maps the name of a stack to nodes with the same operation and different weights: matmuls of one input become one matmul of the
   * concatenated weights, ops on the parts of a stack become one op on the whole. The order is that of the list.
   */
  readonly stacked?: Readonly<Record<S, readonly N[]>>
  /** Maps the kernel name of a group to its schedule, to override the rules. Row programs and elementwise kernels have schedules. */
  readonly schedules?: Readonly<Record<string, Schedule>>
  /** Storage types of models for which the plan's kernels are generated; all types of their ops if undefined. */
  readonly dtypes?: readonly EdgeType[]
  readonly quantised?: Quantisation<Placed<N | NoInfer<S>> | I>
  /**
   * Maps a node to the storage of its result, where it differs from the graph; both ends of the edge must be in groups. Inputs and
   * results of the graph may have a layout, in which a caller has to supply or take them.
   */
  readonly edges?: Readonly<Partial<Record<NodeName<N | NoInfer<S>> | I | `${I}.int8`, EdgeType | EdgeConfig>>>
  /**
   * Maps a kernel name to the nodes that it fuses. A kernel used several times in a layer lists one group per occurrence: the
   * occurrences must derive the same kernel. A group with a matmul becomes a matmul kernel with the rest as its epilogue; one
   * with two matmuls around a softmax becomes an attention kernel.
   */
  readonly groups: Readonly<
    Record<string, readonly GroupName<N | NoInfer<S>, I>[] | readonly (readonly GroupName<N | NoInfer<S>, I>[])[]>
  >
  /**
   * Groups with a matmul that the matmul library computes, epilogue included, instead of a generated kernel: a bias, a residual, both,
   * or relu with or without a bias, in floats. Such a group derives no kernel, so another plan may derive one of the same name.
   */
  readonly library?: readonly string[]
  /**
   * Groups of a single matmul for which `heddle tune` chooses between two forms: the library's matmul, or the generated kernel at the
   * sizes at which it was faster according to a tuning file.
   */
  readonly tuned?: readonly string[]
  /**
   * Maps a number of rows to another plan of the graph, which runs instead at that many rows or fewer: `{ 1: 'one-row', 16: 'few-rows' }`. Rows are
   * those of the graph's first input: all of its axes but the last. Weights are stored once, so both plans have the same stacks and the same int8
   * weights. Checked when CUDA is generated.
   */
  readonly byRows?: Readonly<Record<number, string>>
}

/** Members of a group: inputs are not nodes, but the conversions after them are. */
type GroupName<N extends string, I extends string> = NodeName<N> | `${I}.int8` | `${I}.float`

export interface PlanDecl {
  readonly name: string
  /** Name of the plan's graph. */
  readonly graph: string
  readonly packed?: Packing | undefined
  readonly stacked?: readonly { readonly name: string; readonly nodes: readonly string[] }[] | undefined
  readonly dtypes?: readonly EdgeType[] | undefined
  /** Requested schedules, by kernel. */
  readonly schedules?: Readonly<Record<string, Schedule>> | undefined
  readonly quantised?: QuantisedDecl | undefined
  readonly edges?: readonly { readonly node: string; readonly dtype?: EdgeType; readonly layout?: string }[] | undefined
  /** Each fused kernel with its occurrences. */
  readonly groups: readonly { readonly kernel: string; readonly occurrences: readonly (readonly string[])[] }[]
  /** Names of the groups that the matmul library computes. */
  readonly library?: readonly string[] | undefined
  /** Names of the groups whose form is chosen by measurement. */
  readonly tuned?: readonly string[] | undefined
  /** Plans that run instead at few rows, fewest first. */
  readonly byRows?: readonly { readonly most: number; readonly plan: string }[] | undefined
  /** Target of the search for groups when CUDA is generated; undefined if the groups are declared. */
  readonly auto?: AutoTarget | undefined
  /** Layouts of its edges and int8 weights, by name. */
  readonly layouts?: NamedLayouts | undefined
  /** Source location of the declaration; undefined for plans that a search or a tool creates. */
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

/** Target of an automatic plan, for the cost model of src/cost/step.ts. */
export interface AutoTarget {
  /** A device of the cost model, such as `h200`. */
  readonly device: string
  /** Dimensions that override the typical ones of the graph. */
  readonly dims?: Readonly<Record<string, number>> | undefined
  /** Storage type; f16 if undefined. */
  readonly dtype?: 'f32' | 'f16' | 'bf16' | undefined
}

export interface AutoPlanConfig<N extends string, S extends string>
  extends AutoTarget,
    Pick<PlanConfig<N, S>, 'packed' | 'stacked'> {}
