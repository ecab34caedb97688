/**
 * An instance is a kernel with its specialisation: a storage type for every type parameter and, where it pays, fixed
 * dimensions. Its key names the generated file, the launcher and the manifest entry.
 */
import { type DType, isDType } from './dtype.js'
import type { DTypeRef, Kernel } from './kernel.js'

export interface Instance {
  readonly kernel: Kernel
  readonly types: Readonly<Record<string, DType>>
  /** Dimensions fixed at compile time. */
  readonly dims: Readonly<Record<string, number>>
}

/** `layer_norm__f16`, `softmax__f16__n128`: the kernel, its types in declaration order, its fixed dimensions sorted by name. */
export function instanceKey(
  kernel: string,
  types: Readonly<Record<string, DType>>,
  dims: Readonly<Record<string, number>> = {},
): string {
  const fixed = Object.keys(dims)
    .sort()
    .map((name) => `${name}${dims[name]}`)
  return [kernel, Object.values(types).join('_'), fixed.join('_')].filter((part) => part !== '').join('__')
}

/** The storage type a tensor parameter has in an instance. */
export function resolveDType(ref: DTypeRef, types: Readonly<Record<string, DType>>): DType {
  const name = typeof ref === 'string' ? ref : types[ref.param]
  if (name === undefined || !isDType(name)) throw new Error(`internal: type parameter ${JSON.stringify(ref)} has no storage type`)
  return name
}

/** Every combination of the storage types a kernel declares. */
export function allInstances(kernel: Kernel): Instance[] {
  let combos: Record<string, DType>[] = [{}]
  for (const [param, choices] of Object.entries(kernel.types)) {
    combos = combos.flatMap((combo) => choices.map((choice) => ({ ...combo, [param]: choice })))
  }
  return combos.map((types) => ({ kernel, types, dims: {} }))
}
