/**
 * Instances: a kernel with its specialisation, a storage type for every type parameter and, where profitable, fixed
 * dimensions. The key of an instance names the generated file, the launcher and the manifest entry.
 */
import { type DType, isDType } from './dtype.js'
import type { DTypeRef, Kernel } from './kernel.js'
import { parseLayoutName } from './split_layout.js'
import { rankedCounts } from './top_k.js'

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

/** Storage type of a tensor parameter in an instance. */
export function resolveDType(ref: DTypeRef, types: Readonly<Record<string, DType>>): DType {
  const name = typeof ref === 'string' ? ref : types[ref.param]
  if (name === undefined || !isDType(name)) throw new Error(`internal: type parameter ${JSON.stringify(ref)} has no storage type`)
  return name
}

type FixedDims = Readonly<Record<string, number>>

/** Dimensions that must be fixed to generate a kernel: the number of elements of a row that it ranks. */
export const rankedDims = ({ body }: Pick<Kernel, 'body'>): readonly string[] => [
  ...new Set(body.flatMap((stmt) => (stmt.kind === 'topK' && stmt.count.kind === 'dim' ? [stmt.count.name] : []))),
]

/**
 * Fixed dimensions of a kernel's instances: none, and the profitable ones, each with every count that rows are ranked to. In a layout that
 * interleaves columns, fixing the size of heads is profitable: adjacent columns are known only then. The graph states its typical size.
 */
function fixedDims(kernel: Kernel): readonly FixedDims[] {
  const split = kernel.tensors.find(({ layout }) => (parseLayoutName(layout.name).runs?.at(-1) ?? 1) > 1)
  const column = split?.dims.at(-1)
  const typical = column === undefined ? undefined : kernel.typical?.[column]
  const profitable: readonly FixedDims[] = column === undefined || typical === undefined ? [{}] : [{}, { [column]: typical }]
  return rankedDims(kernel).reduce(
    (combos, dim) => combos.flatMap((combo) => rankedCounts.map((count) => ({ ...combo, [dim]: count }))),
    profitable,
  )
}

/** Every combination of the storage types that a kernel declares. */
export function allTypes({ types }: Pick<Kernel, 'types'>): Readonly<Record<string, DType>>[] {
  let combos: Record<string, DType>[] = [{}]
  for (const [param, choices] of Object.entries(types)) {
    combos = combos.flatMap((combo) => choices.map((choice) => ({ ...combo, [param]: choice })))
  }
  return combos
}

/** An instance for every combination of storage types and of profitable fixed dimensions. */
export const allInstances = (kernel: Kernel): Instance[] =>
  allTypes(kernel).flatMap((types) => fixedDims(kernel).map((dims) => ({ kernel, types, dims })))
