/**
 * Division of a program's dimensions into fixed and open ones for an export. Weights have their sizes, so dimensions that these depend on are fixed,
 * as are those that the caller fixes. A run passes the sizes of the others.
 */
import { usageError } from '../errors.js'
import { dimsIn, type Extent, evaluateExtent, multiplyExtents } from '../ir/shape.js'
import type { CompiledProgram } from '../program/index.js'
import { dimensionsOf } from '../runtime/api/dimensions.js'

type Sizes = Readonly<Record<string, number>>

export interface OpenDims {
  readonly open: readonly string[]
  readonly fixed: Sizes
  /** Upper bounds of open dimensions. */
  readonly most: Readonly<Record<string, Extent>>
}

const dimsOf = (compiled: CompiledProgram): readonly string[] => [
  ...new Set([...dimensionsOf(compiled).dims, ...compiled.ragged.flatMap(({ batch, seq }) => dimsIn([batch, seq]))]),
]

/** True if an export of the program can fix this dimension. */
export const hasDim = (compiled: CompiledProgram, dim: string): boolean =>
  dimsOf(compiled).includes(dim) || Object.hasOwn(compiled.dims, dim)

/** @param given sizes from the caller @throws usage `export.dims` for a size of an unknown dimension */
export function openDims(compiled: CompiledProgram, given: Sizes): OpenDims {
  const { name, weights, ragged } = compiled
  const all = dimsOf(compiled)
  const unknown = Object.keys(given).find((dim) => !hasDim(compiled, dim))
  if (unknown !== undefined)
    throw usageError('export.dims', `${name} has no dimension ${unknown}`, { hint: `dimensions are ${all.join(', ')}` })
  const ofWeights = dimsIn(Object.values(weights).flatMap(({ shape }) => shape))
  const isFixed = (dim: string): boolean => Object.hasOwn(given, dim) || ofWeights.includes(dim)
  const fixed = all.filter(isFixed).map((dim) => [dim, given[dim] ?? typical(compiled, dim)] as const)
  const open = all.filter((dim) => !isFixed(dim)).sort()
  const most = ragged.flatMap(({ tokens, batch, seq }) =>
    open.includes(tokens) ? [[tokens, multiplyExtents([batch, seq])] as const] : [],
  )
  return { open, fixed: Object.fromEntries(fixed), most: Object.fromEntries(most) }
}

function typical({ name, dims }: CompiledProgram, dim: string): number {
  const size = dims[dim]
  if (size !== undefined) return size
  throw usageError('export.dims', `${name}: weights depend on ${dim}, whose size is unknown`, {
    hint: `set it: --dims ${dim}=...`,
  })
}

/** Nearly coprime sizes of open dimensions: a relation that holds at all of them is no accident. */
const primes = [
  [3, 7, 5, 11, 13, 17, 19, 23],
  [6, 4, 9, 8, 10, 12, 14, 15],
]

/** Sizes at which expressions are checked: first the usual ones, then others. Fewer rows are packed than there is room for. */
export function trialSizes(
  compiled: CompiledProgram,
  open: readonly string[],
  fixed: Sizes,
  trial: number,
): Record<string, number> {
  const list = primes[trial - 1]
  const sizes: Record<string, number> = { ...fixed }
  const packed = new Set(compiled.ragged.map(({ tokens }) => tokens))
  for (const [i, dim] of open.entries()) {
    if (packed.has(dim)) continue
    sizes[dim] = list === undefined ? (compiled.dims[dim] ?? 2) : (list[i % list.length] ?? 2) + Math.floor(i / list.length)
  }
  for (const { tokens, batch, seq } of compiled.ragged) {
    if (Object.hasOwn(fixed, tokens)) continue
    sizes[tokens] = Math.max(1, evaluateExtent(multiplyExtents([batch, seq]), sizes) - trial)
  }
  return sizes
}
