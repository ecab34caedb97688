/** Declaration of tensors in the signature of an op, a graph or a program. */
import type { DType } from '../ir/dtype.js'
import { expectArguments, expectParts } from './arguments.js'
import type { LayoutDecl } from './layout.js'
import type { StateDecl, TensorDecl } from './types.js'

/**
 * Declares a tensor of storage type `type` (a storage type, or a type parameter of the op) and dimensions `dims` (names separated
 * by single blanks; empty for a scalar), row-major unless a layout is given.
 */
export function tensor<const Type extends DType | (string & {}), const Dims extends string>(
  type: Type,
  dims: Dims,
  layout?: LayoutDecl,
): TensorDecl<Type, Dims> {
  expectArguments('tensor.config', 'tensor', tensor, {
    'the storage type': [type, 'text'],
    dims: [dims, 'text'],
    layout: [layout, 'layout?'],
  })
  return { type, dims, layout }
}

/** Declares a state of a program: a tensor that persists between runs. A `cleared` one starts as zeros, for elements read before they are written. */
export function state<const Type extends DType | (string & {}), const Dims extends string>(
  type: Type,
  dims: Dims,
  options: { readonly cleared?: boolean; readonly layout?: LayoutDecl } = {},
): StateDecl<Type, Dims> {
  expectArguments('tensor.config', 'state', state, { options: [options, 'record'] })
  expectParts('tensor.config', 'state', state, ['cleared', 'layout'], options)
  const { cleared = false, layout } = options
  expectArguments('tensor.config', 'state', state, {
    'the storage type': [type, 'text'],
    dims: [dims, 'text'],
    layout: [layout, 'layout?'],
  })
  return { type, dims, layout, cleared }
}
