/**
 * A program: graphs applied to values, in order. What a program declares is storage-type and size polymorphic like its graphs; a plan
 * says how each value is held, and whoever runs it which sizes it has.
 */
import type { Written } from '../errors.js'
import type { Graph, GraphValue } from './graph.js'
import type { DTypeRef } from './kernel.js'
import type { Extent } from './shape.js'

/** Index into `Program.values`. */
export type ProgramValueId = number

/** A value with what messages call it: an input or state by its name, a result by its application, `layer3.hidden`. */
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
  /** Graph weight to the program's name of it. */
  readonly weights: Readonly<Record<string, string>>
  readonly outputs: Values
  readonly attrs: Readonly<Record<string, number>>
  /** The graph's dimensions and type parameters in the program's. */
  readonly dims: Readonly<Record<string, Extent>>
  readonly types: Readonly<Record<string, DTypeRef>>
  /** The repeated regions it is in, outermost first, and which repetition of each it belongs to. */
  readonly within: readonly Repetition[]
  /** Where its author wrote it; undefined for programs that a tool makes. */
  readonly written?: Written | undefined
}

export interface Repetition {
  readonly name: string
  readonly index: number
  /** True if every repetition has weights of its own. */
  readonly own: boolean
}

export type ProgramNode =
  | Application
  /** The same elements under another shape; moves nothing. */
  | { readonly kind: 'view'; readonly input: ProgramValueId; readonly out: ProgramValueId }

/** An axis of `batch * seq` rows of which each sequence has as many as `lengths` says: a plan may hold them without padding. */
export interface RaggedAxis {
  readonly batch: Extent
  readonly seq: Extent
  /** Dimension that is the number of rows without padding. */
  readonly tokens: string
  readonly lengths: ProgramValueId
}

/** A value that outlives runs. */
export interface ProgramStateDecl {
  readonly value: ProgramValueId
  /** What it holds after a run; what it held before where undefined. */
  readonly next: ProgramValueId | undefined
  /** Starts as zeros. */
  readonly cleared: boolean
}

export interface Program {
  readonly name: string
  /** Every dimension, with the size it usually has. */
  readonly dims: Readonly<Record<string, number>>
  readonly values: readonly ProgramValue[]
  readonly nodes: readonly ProgramNode[]
  readonly inputs: Values
  readonly outputs: Values
  readonly states: Readonly<Record<string, ProgramStateDecl>>
  /** What whoever loads the program supplies. */
  readonly weights: Readonly<Record<string, GraphValue>>
  readonly ragged: readonly RaggedAxis[]
}
