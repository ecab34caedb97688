/**
 * A model layer as a graph: values connected by nodes, in the order of their declaration (which is a topological order).
 * A graph is polymorphic in storage types like an op; a program fixes its types, dimensions and attributes.
 */
import type { Expr } from './expr.js'
import type { DTypeRef } from './kernel.js'
import type { Extent, Shape } from './shape.js'

/** Index into `Graph.values`. */
export type ValueId = number

export interface GraphValue {
  readonly dtype: DTypeRef
  readonly shape: Shape
  /** Name of the layout the value is stored in: `row`, a declared layout, or one whose axes the value splits (see ir/layout.ts). */
  readonly layout: string
}

/** A number, the name of a graph attribute that the program supplies, or the extent of one of its dimensions. */
export type AttrValue = number | { readonly attr: string } | { readonly dim: string }

/**
 * Epilogue of a library matmul, applied to its float32 sums before they are rounded and stored. The sum that a bias is added to may be
 * rounded to the result's type as well.
 */
export interface MatmulEpilogue {
  /** One element per column of the result. */
  readonly bias?: ValueId | undefined
  /** Has the shape of the result. */
  readonly residual?: ValueId | undefined
  /** Negative results become 0, after bias and residual. */
  readonly relu: boolean
}

export type GraphNode =
  | {
      readonly kind: 'op'
      readonly name: string
      readonly op: string
      /** Storage types of the op's type parameters. */
      readonly types: Readonly<Record<string, DTypeRef>>
      readonly inputs: Readonly<Record<string, ValueId>>
      readonly outputs: Readonly<Record<string, ValueId>>
      readonly attrs: Readonly<Record<string, AttrValue>>
    }
  /** An einsum-style matmul of two tensors, such as `m k, n k -> m n`; accumulates in float32, or for int8 in int32. */
  | {
      readonly kind: 'matmul'
      readonly name: string
      readonly a: ValueId
      readonly b: ValueId
      readonly out: ValueId
      readonly subscripts: { readonly a: readonly string[]; readonly b: readonly string[]; readonly out: readonly string[] }
      /** Planned graphs only: epilogue of the library's matmul, for a matrix of floats. */
      readonly epilogue?: MatmulEpilogue | undefined
      /** Planned graphs only: the kernel that computes the same, and replaces the library where it was measured to be faster. */
      readonly generated?: string | undefined
    }
  /** The same elements under another shape; moves nothing. */
  | { readonly kind: 'view'; readonly name: string; readonly input: ValueId; readonly out: ValueId }

export type NodeOf<K extends GraphNode['kind']> = Extract<GraphNode, { kind: K }>

type Names = Readonly<Record<string, string>>

export interface Graph {
  readonly name: string
  readonly values: readonly GraphValue[]
  readonly nodes: readonly GraphNode[]
  readonly inputs: Readonly<Record<string, ValueId>>
  readonly weights: Readonly<Record<string, ValueId>>
  /** Weights that are concatenations of others, and the names of those. */
  readonly stacked?: Readonly<Record<string, readonly string[]>> | undefined
  /** Weights that are the scales of int8 weights, one per row; times the scale of the other operand, where that is an attribute. */
  readonly steps?: Readonly<Record<string, { readonly weight: string; readonly times?: string | undefined }>> | undefined
  readonly outputs: Readonly<Record<string, ValueId>>
  readonly attrs: readonly string[]
  /** Typical extents of dimensions. */
  readonly typical?: Readonly<Record<string, number>> | undefined
  /** Graphs without padding only: the arrangement of packed rows. */
  readonly packing?: PackedRows | undefined
  /** Inputs and outputs that are the int8 form of another, by name. */
  readonly int8?: { readonly inputs: Names; readonly outputs: Names } | undefined
  /** Attributes that are scales of quantised values. */
  readonly scales?: Readonly<Record<string, Scale>> | undefined
  /** Planned graphs only: values with quantised rows whose channels can be scaled by weights alone. */
  readonly folds?: readonly ScaleFolding[] | undefined
  /** Planned graphs only: the same graph under other plans, for few rows. */
  readonly byRows?: ByRows | undefined
}

/** The number of rows of a graph, and what runs instead of it at few rows, fewest first. */
export interface ByRows {
  readonly rows: Extent
  readonly few: readonly FewRows[]
}

/** A graph under another plan, for at most `most` rows. Its inputs, weights and outputs are those of the graph. */
export interface FewRows {
  readonly most: number
  readonly plan: string
  readonly graph: Omit<Graph, 'byRows'>
}

/** Rows of tokens without padding between sequences, and the graph's inputs that locate them, as far as it needs them. */
export interface PackedRows {
  readonly batch: Extent
  readonly seq: Extent
  /** The number of packed rows. */
  readonly tokens: Extent
  /** Per sequence: its length, and its first row. */
  readonly lengths?: ValueId | undefined
  readonly starts?: ValueId | undefined
  /** Per row: its sequence, and its position there. */
  readonly sequences?: ValueId | undefined
  readonly positions?: ValueId | undefined
}

/** Form of a scale: amax / 127, or its inverse. */
export type ScaleForm = 'step' | 'inverse'

/** Scale of a value, by its calibration site. */
export interface Scale {
  readonly site: string
  readonly as: ScaleForm
}

/** One axis of a weight. */
export interface WeightAxis {
  readonly weight: string
  readonly axis: number
}

/**
 * A value whose channels may be scaled by any factors that are not 0. The weights that produce channel `c` are divided by a factor, so
 * that the channel is; the weights that multiply it are multiplied by the factor. The results of the graph stay the same.
 */
export interface ScaleFolding {
  /** The node that computes the value. */
  readonly value: string
  /** The value as matmuls read it: rows of channels. */
  readonly shape: Shape
  /** Weights whose element along the axis multiplies the channel of the same number. */
  readonly readers: readonly WeightAxis[]
  /**
   * Weights that produce channels, with the element along the axis that produces channel `channel`. Channels of the same element have
   * the same factor.
   */
  readonly makers: readonly (WeightAxis & { readonly element: Expr })[]
}

/** Index name of the channel in `ScaleFolding.makers`. */
export const foldChannel = 'channel'

/** True if a graph has int8 weights. */
export const isQuantised = ({ steps }: Pick<Graph, 'steps'>): boolean => Object.keys(steps ?? {}).length > 0

/** True if a graph computes with int8, beyond reading int8 weights: some int8 value is not a weight. */
export function computesInt8({ values, weights }: Pick<Graph, 'values' | 'weights'>): boolean {
  const stored = new Set(Object.values(weights))
  return values.some(({ dtype }, id) => dtype === 'i8' && !stored.has(id))
}

/** Values a node reads. */
export function inputsOf(node: GraphNode): readonly ValueId[] {
  switch (node.kind) {
    case 'op':
      return Object.values(node.inputs)
    case 'matmul':
      return matmulInputs(node)
    case 'view':
      return [node.input]
  }
}

const matmulInputs = ({ a, b, epilogue }: NodeOf<'matmul'>): readonly ValueId[] =>
  [a, b, epilogue?.bias, epilogue?.residual].flatMap((id) => id ?? [])

/** Values a node computes. */
export function outputsOf(node: GraphNode): readonly ValueId[] {
  switch (node.kind) {
    case 'op':
      return Object.values(node.outputs)
    case 'matmul':
    case 'view':
      return [node.out]
  }
}
