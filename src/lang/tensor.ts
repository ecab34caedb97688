/** Declaring a tensor in an op's or graph's signature. */
import type { DType } from '../ir/dtype.js'
import type { LayoutDecl } from './layout.js'
import type { TensorDecl } from './types.js'

/**
 * A tensor of storage type `type` (a storage type, or a type parameter of the op) and dimensions `dims` (names separated
 * by single blanks; empty for a scalar), row-major unless a layout is given.
 */
export function tensor<const Type extends DType | (string & {}), const Dims extends string>(
  type: Type,
  dims: Dims,
  layout?: LayoutDecl,
): TensorDecl<Type, Dims> {
  return { type, dims, layout }
}
