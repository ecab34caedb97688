/** An exported program as data: what the text of an export is written from. Every size is an expression of the dimensions left open. */
import type { DType } from '../ir/dtype.js'
import type { Extent } from '../ir/shape.js'
import type { Form } from './forms.js'
import type { Size } from './sizes.js'

export type Home = 'arena' | 'weight' | 'state' | 'input' | 'output'

export interface LoweredStorage {
  readonly home: Home
  /** Which weight, state, input or output; 0 for the arena. */
  readonly index: number
  readonly first: number
  readonly last: number
  readonly bytes: Size
}

/** A kernel that takes the place of the library's matmul for some rows of one matrix of weights, on one architecture. */
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
  /** Of a kernel its buffers, of a product a, b and out, of a copy from and to. */
  readonly storages: readonly number[]
  readonly attrs: readonly (number | Extent)[]
  readonly dtypes: readonly DType[]
  readonly bias?: number | undefined
  readonly residual?: number | undefined
  readonly relu: boolean
  /** Of a matmul that is the library's where none of these is: the first that fits takes its place. */
  readonly choices?: readonly Choice[]
  /** Dimensions of a kernel; extents and strides of a product. */
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
  /** Tensors that lie one behind the other in it; none where it is a tensor itself. */
  readonly parts: readonly NamedShape[]
}

export interface LoweredValue extends Form {
  readonly name: string
  readonly storage: number
  /** Elements of its memory, where its layout pads: to its caller it is a list of these. */
  readonly padded?: Size
  /** Of a layout other than rows, in which these are the same everywhere: elements from one index to the next along each axis. */
  readonly strides?: readonly Size[]
}

export interface LoweredState extends LoweredValue {
  readonly cleared: boolean
}

export interface Lowered {
  readonly name: string
  readonly plan: string
  readonly dtype: DType
  /** Dimensions that each run says. */
  readonly dims: readonly string[]
  readonly fixed: Readonly<Record<string, number>>
  /** What a dimension may be at most, by its name. */
  readonly most: Readonly<Record<string, Extent>>
  readonly weights: readonly LoweredWeight[]
  readonly inputs: readonly LoweredValue[]
  readonly outputs: readonly LoweredValue[]
  readonly states: readonly LoweredState[]
  readonly storages: readonly LoweredStorage[]
  readonly steps: readonly LoweredStep[]
  /** True if kernels read inputs as constants, so that a run has to wait for what was launched before it. */
  readonly fenced: boolean
  /** Outputs whose value lies elsewhere, copied behind the last step: indices of outputs and storages. */
  readonly moved: readonly { readonly output: number; readonly storage: number }[]
}

/** Keys of all kernels that a step may launch. */
export const keysOf = ({ key, choices = [] }: LoweredStep): readonly string[] => [
  ...(key === undefined ? [] : [key]),
  ...new Set(choices.map((choice) => choice.key)),
]
