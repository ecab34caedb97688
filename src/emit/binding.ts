/**
 * What the generated `bindings.ts` is built from: an op's signature as types, so that a call with a missing tensor, a wrong
 * storage type or an unknown attribute does not compile. Binding needs no device; it only orders arguments.
 */
import { usageError } from '../errors.js'
import type { DType } from '../ir/dtype.js'
import { instanceKey } from '../ir/instance.js'

/** A signature: the tensors' dimension names, the order of dimensions, the attributes' defaults. */
export interface BindingSpec<P extends string, B extends string, A extends string> {
  readonly op: string
  readonly types: readonly P[]
  /** Dimension names of each tensor, in the launcher's buffer order. */
  readonly tensors: Readonly<Record<B, readonly string[]>>
  readonly dims: readonly string[]
  readonly attrs: Readonly<Record<A, number>>
}

/** A buffer of any kind (a slice, a tensor, a value id) with its logical extents. */
export interface Shaped<Buffer> {
  readonly buffer: Buffer
  readonly shape: readonly number[]
}

/** The arguments of a launcher in its order. */
export interface KernelCall<Buffer> {
  readonly key: string
  readonly buffers: readonly Buffer[]
  readonly dims: readonly number[]
  readonly attrs: readonly number[]
}

export interface BoundOp<B extends string, A extends string> {
  /** The instance key: `layer_norm__f16`. */
  readonly key: string
  /**
   * Orders the arguments. Dimensions follow from the shapes; attributes left out take their defaults.
   * @throws usage `bind.rank` or `bind.shape` when the shapes disagree with the signature or with each other
   */
  bind<Buffer>(tensors: Readonly<Record<B, Shaped<Buffer>>>, attrs?: Readonly<Partial<Record<A, number>>>): KernelCall<Buffer>
}

/** A typed binding of an op: `layerNorm({ T: 'f16' }).bind({ x, gamma, beta, y })`. */
export function bindOp<T extends Readonly<Record<string, DType>>, B extends string, A extends string>(
  spec: BindingSpec<keyof T & string, B, A>,
): (types: T, fixedDims?: Readonly<Record<string, number>>) => BoundOp<B, A> {
  return (types, fixedDims = {}) => {
    const chosen: Readonly<Record<string, DType>> = types
    const inOrder = Object.fromEntries(
      spec.types.flatMap((param) => (chosen[param] === undefined ? [] : [[param, chosen[param]]])),
    )
    const key = instanceKey(spec.op, inOrder, fixedDims)
    return { key, bind: (tensors, attrs) => bindCall(key, spec, tensors, attrs) }
  }
}

function bindCall<B extends string, A extends string, Buffer>(
  key: string,
  spec: BindingSpec<string, B, A>,
  tensors: Readonly<Record<B, Shaped<Buffer>>>,
  attrs: Readonly<Partial<Record<A, number>>> | undefined,
): KernelCall<Buffer> {
  const extents = new Map<string, number>()
  const names = Object.keys(spec.tensors) as B[]
  for (const name of names) bindShape(key, name, spec.tensors[name], tensors[name].shape, extents)
  const dims = spec.dims.map((dim) => {
    const extent = extents.get(dim)
    if (extent === undefined) throw new Error(`internal: no tensor of ${key} has dimension ${dim}`)
    return extent
  })
  const given = (Object.keys(spec.attrs) as A[]).map((name) => attrs?.[name] ?? spec.attrs[name])
  return { key, buffers: names.map((name) => tensors[name].buffer), dims, attrs: given }
}

function bindShape(
  key: string,
  name: string,
  dims: readonly string[],
  shape: readonly number[],
  extents: Map<string, number>,
): void {
  if (shape.length !== dims.length) {
    throw usageError('bind.rank', `${key}: ${name} is "${dims.join(' ')}", the tensor given has shape (${shape.join(', ')})`)
  }
  dims.forEach((dim, i) => {
    const extent = shape[i] ?? 0
    const known = extents.get(dim)
    if (known !== undefined && known !== extent) {
      throw usageError('bind.shape', `${key}: dimension ${dim} of ${name} is ${extent}, but ${known} in an earlier tensor`)
    }
    extents.set(dim, extent)
  })
}
