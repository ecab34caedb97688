/** Sizes and contents for calls of a described op: edges of lengths, and of the ranges of storage types. */
import type { DimDesc, Domain, DType, InputDesc, OpDesc } from './describe.js'
import type { Held } from './evaluate.js'
import { operands } from './prune.js'
import { Random } from './random.js'
import { extremes, hasInfinity, stored } from './storage.js'
import { exact } from './value.js'

/** One call of an op. */
export interface OpCase {
  readonly dims: Readonly<Record<string, number>>
  readonly inputs: ReadonlyMap<string, Held>
  /** True where infinities, NaN and extremes are among the elements. */
  readonly special: boolean
}

const edges = [
  1, 2, 3, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 61, 63, 64, 65, 100, 127, 128, 129, 192, 255, 256, 257, 383, 512, 513, 769,
  1023, 1024, 1025, 2049,
]
const few = [1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 24, 31, 33]
const rows = [1, 2, 3, 5, 6]
/** Counts that rankings are compiled for. */
const ranked = [1, 2, 4, 8, 16, 32, 64]
/** Number of elements over all dimensions that one case visits. */
const budget = 12_000

function sizeOf(dim: DimDesc, random: Random, limit: number): number {
  const below = (list: readonly number[]): number => random.pick(list.filter((size) => size <= limit || size === 1))
  switch (dim.size) {
    case 'rows':
      return random.chance(0.03) ? 0 : below(rows)
    case 'few':
      return below(few)
    case 'ranked':
      return below(ranked)
    case 'carried':
      return below(edges.filter((size) => size <= 129))
    case 'row':
      return below(edges)
    case 'fixed':
      return dim.at
    case 'derived':
      return 0
  }
}

/** True if a length of 0 can be tested: no element is read at a fixed place, or at one from an empty reduction. */
export function mayBeEmpty(op: OpDesc): boolean {
  const isPlain = op.body.every((s) => s.kind === 'const' || s.kind === 'row' || s.kind === 'scan')
  return isPlain && op.inputs.every(({ domain }) => domain.kind !== 'index')
}

/** The depth of reductions inside of elements: each visits a dimension once more. */
function nesting(op: OpDesc): number {
  let deepest = 0
  const depth = (e: Parameters<typeof operands>[0]): number =>
    Math.max(0, ...operands(e).map(depth)) + (e.kind === 'reduce' ? 1 : 0)
  for (const { result } of op.outputs)
    deepest = Math.max(deepest, depth(result.kind === 'number' ? result.value : result.loop.value))
  return deepest
}

export function drawSizes(op: OpDesc, random: Random): Readonly<Record<string, number>> {
  const sizes: Record<string, number> = {}
  // The prefix sums of float64 are recomputed for each element.
  const isQuadratic = op.body.some(({ kind }) => kind === 'scan') || nesting(op) > 1
  let left = isQuadratic ? budget / 3 : budget
  for (const dim of random.shuffle(op.dims)) {
    if (dim.size === 'derived') continue
    const longest = isQuadratic ? Math.min(left, 300) : left
    const most = Math.min(longest, 'most' in dim ? (dim.most ?? longest) : longest)
    const size = dim.size === 'row' && mayBeEmpty(op) && random.chance(0.04) ? 0 : sizeOf(dim, random, most)
    sizes[dim.name] = size
    left = Math.max(1, left / Math.max(size, 1))
  }
  for (const dim of op.dims) if (dim.size === 'derived') sizes[dim.name] = dim.times * (sizes[dim.of] ?? 0) + dim.plus
  return sizes
}

/** Multiples of 1/8, whose sums are exact, or numbers of any size. */
function floatOf(dtype: DType, random: Random, wide: boolean): number {
  if (dtype === 'i8') return random.between(-20, 20)
  if (!wide) return stored(dtype, random.between(-24, 24) / 8)
  const size = 2 ** (random.next() * 8 - 5)
  return stored(dtype, random.chance(0.5) ? size : -size)
}

function specialOf(dtype: DType, random: Random): number {
  if (dtype === 'i8') return random.pick([-128, -127, 127, 0])
  const infinities = hasInfinity(dtype) ? [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY] : []
  const all = [0, -0, Number.NaN, ...infinities, ...extremes(dtype).flatMap((x) => [x, -x])]
  return random.pick(all)
}

function intOf(domain: Domain, dtype: DType, random: Random, dims: Readonly<Record<string, number>>, isSpecial: boolean): number {
  switch (domain.kind) {
    case 'index': {
      const most = { u8: 256, i16: 32_768 }[dtype as string] ?? 2 ** 31
      return random.below(Math.max(1, Math.min(most, dims[domain.of] ?? 1)))
    }
    case 'bits':
      return isSpecial && random.chance(0.2)
        ? random.pick([0, -1, 2 ** 31 - 1, -(2 ** 31)])
        : Math.floor(random.next() * 2 ** 32) - 2 ** 31
    case 'length':
      return random.between(domain.least, Math.max(domain.least, dims[domain.of] ?? 0))
    case 'flag':
      return random.below(2)
    case 'int':
      return random.chance(0.3) ? random.pick([domain.from, domain.to, 0, 1]) : random.between(domain.from, domain.to)
    default:
      return 0
  }
}

/** Elements of a tensor, by its domain. */
export function contentOf(
  input: Pick<InputDesc, 'dtype' | 'domain' | 'dims'>,
  random: Random,
  dims: Readonly<Record<string, number>>,
  isSpecial: boolean,
): Held {
  const { dtype, domain } = input
  const shape = input.dims.map((extent) => extent.split('*').reduce((size, dim) => size * (dims[dim] ?? 0), 1))
  const count = shape.reduce((size, extent) => size * extent, 1)
  const wide = random.chance(0.4)
  const share = isSpecial ? random.pick([0, 0.02, 0.2]) : 0
  const element = (): number => {
    if (domain.kind === 'unit')
      return stored(dtype, random.between(dtype === 'i8' ? -1 : -8, dtype === 'i8' ? 1 : 8) / (dtype === 'i8' ? 1 : 8))
    if (domain.kind === 'float') return random.chance(share) ? specialOf(dtype, random) : floatOf(dtype, random, wide)
    return intOf(domain, dtype, random, dims, isSpecial)
  }
  return { dtype, shape, values: Array.from({ length: count }, () => exact(element())) }
}

/** The calls of an op: sizes differ, and the last of them has special values. */
export function drawCases(op: OpDesc, seed: number, count = 3): OpCase[] {
  return Array.from({ length: count }, (_, at) => {
    const random = new Random(seed + 77 * (at + 1))
    const dims = drawSizes(op, random)
    // A user-defined monoid is one over numbers: NaN, and values below its identity, break its laws.
    const special = at === count - 1 && op.monoids.length === 0
    const inputs = new Map(op.inputs.map((input) => [input.name, contentOf(input, random, dims, special)] as const))
    return { dims, inputs, special }
  })
}

/** The dimensions that no input has, whose extents a call must state. */
export function statedDims(op: OpDesc, dims: Readonly<Record<string, number>>): Record<string, number> {
  const known = new Set(op.inputs.flatMap((input) => input.dims))
  return Object.fromEntries(op.dims.filter(({ name }) => !known.has(name)).map(({ name }) => [name, dims[name] ?? 0]))
}
