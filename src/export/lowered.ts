/** An exported program as data, from which its source is written. Every size is an expression of the open dimensions. */
import type { DType } from '../ir/dtype.js'
import type { Extent } from '../ir/shape.js'
import type { Form } from './forms.js'
import type { Size } from './sizes.js'

export type Home = 'arena' | 'weight' | 'state' | 'input' | 'output'

export interface LoweredStorage {
  readonly home: Home
  /** Number of the weight, state, input or output; 0 for the arena. */
  readonly index: number
  readonly first: number
  readonly last: number
  readonly bytes: Size
}

/** A kernel that replaces the library's matmul on one architecture, for some row counts of one weight matrix. */
export interface Choice {
  readonly key: string
  readonly architecture: string
  readonly length: number
  readonly depth: number
  readonly fromRows: number
  readonly toRows?: number | undefined
}

export interface LoweredStep {
  readonly kind: 'kernel' | 'matmul' | 'copy'
  readonly label: string
  /** Instance key of a kernel. */
  readonly key?: string
  /** Buffers of a kernel; a, b and out of a matmul; source and destination of a copy. */
  readonly storages: readonly number[]
  readonly attrs: readonly (number | Extent)[]
  readonly dtypes: readonly DType[]
  readonly bias?: number | undefined
  readonly residual?: number | undefined
  readonly relu: boolean
  /** Kernels that replace the library's matmul, for a matmul. The first that fits is used. */
  readonly choices?: readonly Choice[]
  /** Dimensions of a kernel; extents and strides of a matmul. */
  readonly numbers: readonly Size[]
}

export interface NamedShape {
  readonly name: string
  readonly dtype: DType
  readonly shape: readonly number[]
}

export interface LoweredWeight extends NamedShape {
  readonly layout: string
  readonly bytes: number
  /** Tensors that are concatenated in it; empty if it is one tensor. */
  readonly parts: readonly NamedShape[]
}

export interface LoweredValue extends Form {
  readonly name: string
  readonly storage: number
  /** Elements of its memory, if its layout pads. Callers see a list of these. */
  readonly padded?: Size
  /** Strides in elements along each axis, for layouts other than rows in which they are constant. */
  readonly strides?: readonly Size[]
}

export interface LoweredState extends LoweredValue {
  readonly cleared: boolean
}

export interface Lowered {
  readonly name: string
  readonly plan: string
  /** Plans for few rows that are not exported, since the number of rows is open. */
  readonly left: readonly string[]
  readonly dtype: DType
  /** Dimensions whose sizes each run passes. */
  readonly dims: readonly string[]
  readonly fixed: Readonly<Record<string, number>>
  /** Upper bounds of dimensions, by name. */
  readonly most: Readonly<Record<string, Extent>>
  readonly weights: readonly LoweredWeight[]
  readonly inputs: readonly LoweredValue[]
  readonly outputs: readonly LoweredValue[]
  readonly states: readonly LoweredState[]
  readonly storages: readonly LoweredStorage[]
  readonly steps: readonly LoweredStep[]
  /** True if kernels read inputs as constants, so that a run has to wait for earlier launches. */
  readonly fenced: boolean
  /** Outputs whose value lies elsewhere, copied after the last step: indices of outputs and storages. */
  readonly moved: readonly { readonly output: number; readonly storage: number }[]
}

/** Keys of all kernels that a step may launch. */
export const keysOf = ({ key, choices = [] }: LoweredStep): readonly string[] => [
  ...(key === undefined ? [] : [key]),
  ...new Set(choices.map((choice) => choice.key)),
]
