/**
 * Programs: graphs applied to values, in order. The declarations of a program are polymorphic in storage types and sizes like its graphs. A plan
 * determines the storage of each value, and a caller the sizes.
 */
import type { Written } from '../errors.js'
import type { Graph, GraphValue } from './graph.js'
import type { DTypeRef } from './kernel.js'
import type { Extent } from './shape.js'

/** Index into `Program.values`. */
export type ProgramValueId = number

/** A value with its name in messages: an input or state by its own name, a result by its application, `layer3.hidden`. */
export interface ProgramValue extends GraphValue {
  readonly name: string
}

type Values = Readonly<Record<string, ProgramValueId>>

/** One use of a graph. */
export interface Application {
  readonly kind: 'application'
  /** Unique in the program: `layer3`. */
  readonly label: string
  readonly graph: Graph
  readonly inputs: Values
  /** Maps weights of the graph to names of the program. */
  readonly weights: Readonly<Record<string, string>>
  readonly outputs: Values
  readonly attrs: Readonly<Record<string, number>>
  /** The graph's dimensions and type parameters, in terms of the program's. */
  readonly dims: Readonly<Record<string, Extent>>
  readonly types: Readonly<Record<string, DTypeRef>>
  /** The repeated regions that contain it, outermost first, with its repetition in each. */
  readonly within: readonly Repetition[]
  /** Source location; undefined for programs that a tool creates. */
  readonly written?: Written | undefined
}

export interface Repetition {
  readonly name: string
  readonly index: number
  /** True if each repetition has its own weights. */
  readonly own: boolean
}

export type ProgramNode =
  | Application
  /** The same elements under another shape; moves nothing. */
  | { readonly kind: 'view'; readonly input: ProgramValueId; readonly out: ProgramValueId }

/** An axis of `batch * seq` rows, with the number of rows per sequence in `lengths`. A plan may store them without padding. */
export interface RaggedAxis {
  readonly batch: Extent
  readonly seq: Extent
  /** Dimension for the number of rows without padding. */
  readonly tokens: string
  readonly lengths: ProgramValueId
}

/** A value that persists between runs. */
export interface ProgramStateDecl {
  readonly value: ProgramValueId
  /** Its value after a run; if undefined, it keeps its value. */
  readonly next: ProgramValueId | undefined
  /** True if it starts as zeros. */
  readonly cleared: boolean
}

export interface Program {
  readonly name: string
  /** Every dimension, with its typical size. */
  readonly dims: Readonly<Record<string, number>>
  readonly values: readonly ProgramValue[]
  readonly nodes: readonly ProgramNode[]
  readonly inputs: Values
  readonly outputs: Values
  readonly states: Readonly<Record<string, ProgramStateDecl>>
  /** Weights, supplied by the loader of the program. */
  readonly weights: Readonly<Record<string, GraphValue>>
  readonly ragged: readonly RaggedAxis[]
}
