/**
 * A model layer as a graph: values connected by nodes, in the order they were declared (which is a topological order).
 * A graph is storage-type polymorphic like an op; a program fixes its types, dimensions and attributes.
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
 * What a library's product does to its float32 sums before it rounds and stores them. The sum that a bias is added to may be rounded
 * to the result's type as well.
 */
export interface MatmulEpilogue {
  /** One element for each column of the result. */
  readonly bias?: ValueId | undefined
  /** Of the result's shape. */
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
  /** An einsum-style product of two tensors, such as `m k, n k -> m n`; accumulates in float32, or of int8 in int32. */
  | {
      readonly kind: 'matmul'
      readonly name: string
      readonly a: ValueId
      readonly b: ValueId
      readonly out: ValueId
      readonly subscripts: { readonly a: readonly string[]; readonly b: readonly string[]; readonly out: readonly string[] }
      /** Of a planned graph: what the library computes along, for a matrix of floats. */
      readonly epilogue?: MatmulEpilogue | undefined
      /** Of a planned graph: the kernel that computes the same, and takes the library's place where it was measured to be faster. */
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
  /** Weights that are others laid one behind the other, and the names of those. */
  readonly stacked?: Readonly<Record<string, readonly string[]>> | undefined
  /** Weights that are the steps of int8 weights, one for each row; times the step of what they multiply, where that is an attribute. */
  readonly steps?: Readonly<Record<string, { readonly weight: string; readonly times?: string | undefined }>> | undefined
  readonly outputs: Readonly<Record<string, ValueId>>
  readonly attrs: readonly string[]
  /** Dimensions the graph is usually run with. */
  readonly typical?: Readonly<Record<string, number>> | undefined
  /** Of a graph without padding: how its rows lie. */
  readonly packing?: PackedRows | undefined
  /** Inputs and outputs that are the int8 form of another, by their names. */
  readonly int8?: { readonly inputs: Names; readonly outputs: Names } | undefined
  /** Attributes that are scales of quantised values. */
  readonly scales?: Readonly<Record<string, Scale>> | undefined
  /** Of a planned graph: where channels of values whose rows are quantised can be scaled by weights alone. */
  readonly folds?: readonly ScaleFolding[] | undefined
}

/** Rows of tokens without padding between sequences, and the graph's inputs that say where they lie, as far as it needs them. */
export interface PackedRows {
  readonly batch: Extent
  readonly seq: Extent
  /** The number of packed rows. */
  readonly tokens: Extent
  /** Of each sequence: how long it is, and the row it starts at. */
  readonly lengths?: ValueId | undefined
  readonly starts?: ValueId | undefined
  /** Of each row: its sequence, and its place there. */
  readonly sequences?: ValueId | undefined
  readonly positions?: ValueId | undefined
}

/** A scale is amax / 127, or its inverse. */
export type ScaleForm = 'step' | 'inverse'

/** The scale of a value, by what calibration knows it as. */
export interface Scale {
  readonly site: string
  readonly as: ScaleForm
}

/** A weight, and which of its axes. */
export interface WeightAxis {
  readonly weight: string
  readonly axis: number
}

/**
 * A value whose channels may be scaled by any factors that are not 0: where channel `c` of it comes out divided by a factor because the
 * weights that make it were divided, the weights that multiply it are multiplied by the factor, and the graph computes what it did.
 */
export interface ScaleFolding {
  /** The node that makes the value. */
  readonly value: string
  /** The value as products read it: rows of channels. */
  readonly shape: Shape
  /** Weights whose element along the axis multiplies a channel: that of the channel's number. */
  readonly readers: readonly WeightAxis[]
  /**
   * Weights that channels come from, and which element along the axis channel `channel` comes from. Channels of one element have one
   * factor.
   */
  readonly makers: readonly (WeightAxis & { readonly element: Expr })[]
}

/** The index of a fold's elements. */
export const foldChannel = 'channel'

/** True if a graph has int8 weights. */
export const isQuantised = ({ steps }: Pick<Graph, 'steps'>): boolean => Object.keys(steps ?? {}).length > 0

/** True if a graph computes with int8, and not only reads int8 weights: a value is int8 that is no weight. */
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
