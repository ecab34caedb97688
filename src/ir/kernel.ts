/**
 * A kernel: one row program over an index space. `rows` span the space (one program run per point); within a point the
 * statements run in order. Row values (`row`, `scan`) are pure, so a schedule may keep them in registers or recompute them.
 */
import type { Stmt } from './constructs/index.js'
import type { DType } from './dtype.js'
import type { Expr } from './expr.js'
import type { Facts } from './facts/facts.js'
import type { Layout } from './layout.js'
import type { SourceSpan } from './span.js'

export type { Stmt, StmtOf } from './constructs/index.js'
export type { SourceSpan } from './span.js'

/** A storage type: fixed, or one of the op's type parameters. */
export type DTypeRef = DType | { readonly param: string }

/** Name of a storage type. */
export const printType = (dtype: DTypeRef): string => (typeof dtype === 'string' ? dtype : dtype.param)

export interface TensorParam {
  readonly name: string
  readonly access: 'in' | 'out'
  readonly dtype: DTypeRef
  /** Extent of each logical dimension: a dimension name of the kernel. */
  readonly dims: readonly string[]
  readonly layout: Layout
  /** Outputs only: the input that it updates in place. It equals the input except for some elements (see ir/update.ts). */
  readonly updates?: string
  /**
   * Inputs only: a weight in every graph that uses the kernel. The kernel reads it through the read-only path and at any time, so programs in which a
   * step writes it are refused (runtime/program_constants.ts). Never set for an op itself, which any program may launch.
   */
  readonly constant?: true
}

export interface AttrParam {
  readonly name: string
  readonly type: 'f32' | 'i32'
  readonly default: number
}

export interface RowAxis {
  /** The index variable. */
  readonly index: string
  /** The dimension it spans. */
  readonly dim: string
  /** Dimensions that it spans after that one, if ops are fused horizontally. */
  readonly also?: readonly string[]
  /** Dimensions that it spans within one place of the first, if axes are merged: places of `dim` times places of these. */
  readonly times?: readonly string[]
}

export interface Kernel {
  /** snake_case, unique among the project's ops and fused groups. */
  readonly name: string
  readonly source: SourceSpan
  readonly dims: readonly string[]
  /** Extents of the last dimensions that are no arguments, over the others: a schedule makes one axis of several. */
  readonly computed?: Readonly<Record<string, Expr>>
  /** Type parameters and the storage types each may take. */
  readonly types: Readonly<Record<string, readonly DType[]>>
  readonly attrs: readonly AttrParam[]
  /** Inputs first, then outputs, in declaration order: also the argument order of launchers. */
  readonly tensors: readonly TensorParam[]
  readonly rows: readonly RowAxis[]
  readonly body: readonly Stmt[]
  /** Stores of each output, of as many places of an axis: a schedule gives a point several. One by default. */
  readonly storedPlaces?: number
  /** Derived kernels only: typical extents of dimensions, from the graph. They do not affect the results. */
  readonly typical?: Readonly<Record<string, number>>
  /** Constraints on its arguments, as stated or inferred from bodies. They do not affect the results. */
  readonly facts?: Facts
}

/** Dimensions that are arguments of a launch, in their order. */
export const givenDims = ({ dims, computed = {} }: Pick<Kernel, 'dims' | 'computed'>): readonly string[] =>
  dims.filter((dim) => !Object.hasOwn(computed, dim))

/** A kernel without arguments that computes nothing: the base of other kernels, and a placeholder for none. */
export const emptyKernel: Kernel = {
  name: '',
  source: { file: '', line: 1, column: 1 },
  dims: [],
  types: {},
  attrs: [],
  tensors: [],
  rows: [],
  body: [],
}
