/** Draws the elements of an input by its domain: indices, lengths, flags, positions of packed rows, and floats within bounds. */
import type { KernelEntry } from '../emit/manifest/manifest.js'
import { dtypeInfo } from '../ir/dtype.js'
import { type Count, type Domain, evaluateCount, type Packed } from '../ir/facts/facts.js'
import type { DrawRequest } from './op_rule.js'
import { type Extents, placeOf, raggedLength, raggedStart } from './ragged.js'
import { integer, type Random, uniform } from './random.js'
import type { Sequences } from './sizes.js'

type Buffer = KernelEntry['buffers'][number]

/** One in this many elements is one of the additionally allowed values. */
const seldom = 8

/** Returns the draw of an input's elements; undefined if any number is allowed. */
export function drawOf({ dtype }: Buffer, domain: Domain | undefined, sequences: Sequences) {
  if (domain === undefined) return undefined
  const { packed, divide } = domain
  if (packed !== undefined) return (request: DrawRequest) => packedRows(packed, request, sequences)
  if (divide !== undefined) return (request: DrawRequest) => divided(divide, request)
  const isInteger = dtypeInfo[dtype].scalar === 'i32' || dtype === 'i8'
  return (request: DrawRequest) => drawn(domain, request, isInteger)
}

const elementsIn = (shape: readonly number[]): number => shape.reduce((product, extent) => product * extent, 1)

const filled = (shape: readonly number[], value: (i: number) => number): Float64Array => {
  const made = new Float64Array(elementsIn(shape))
  for (let i = 0; i < made.length; i++) made[i] = value(i)
  return made
}

const most = (counts: readonly Count[] | undefined, dims: Extents): readonly number[] =>
  (counts ?? []).flatMap((count) => evaluateCount(count, dims) ?? [])

function drawn({ from, to, values, first, also, order }: Domain, { next, dims, shape, value }: DrawRequest, isInteger: boolean) {
  const [least, greatest] = [most(from, dims), most(to, dims)]
  const low = least.length === 0 ? Number.NEGATIVE_INFINITY : Math.max(...least)
  const high = greatest.length === 0 ? Number.POSITIVE_INFINITY : Math.max(low, Math.min(...greatest))
  const row = shape.at(-1) ?? 1
  if (values !== undefined) {
    const turn = (i: number): number => Math.max(low, Math.min(high, values[i % values.length] ?? 0))
    return filled(shape, (i) => (first !== undefined && i % row === 0 ? first : turn(first === undefined ? i : i - 1)))
  }
  if (order !== undefined) return ordered(order, low, high, shape, next)
  return filled(shape, () => {
    if (also !== undefined && integer(next, 1, seldom) === 1) return also[integer(next, 0, also.length - 1)] ?? low
    if (isInteger)
      return Number.isFinite(low) && Number.isFinite(high) ? integer(next, low, high) : Math.max(low, Math.min(high, value(next)))
    return Number.isFinite(low) && Number.isFinite(high) ? uniform(next, low, high) : Math.max(low, Math.min(high, value(next)))
  })
}

/** Draws ordered elements along the last axis: ascending from the least to the greatest, or distinct while there are enough values. */
function ordered(order: 'ascending' | 'distinct', low: number, high: number, shape: readonly number[], next: Random) {
  const row = shape.at(-1) ?? 1
  const made = new Float64Array(elementsIn(shape))
  for (let start = 0; start < made.length; start += row) {
    const places =
      order === 'ascending'
        ? [low, ...Array.from({ length: Math.max(0, row - 2) }, () => integer(next, low, high)).sort((a, b) => a - b), high]
        : shuffled(low, high, next)
    for (let i = 0; i < row; i++) made[start + i] = places[i % places.length] ?? low
  }
  return made
}

function shuffled(low: number, high: number, next: Random): number[] {
  const places = Array.from({ length: high - low + 1 }, (_, i) => low + i)
  for (let i = places.length - 1; i > 0; i--) {
    const j = integer(next, 0, i)
    ;[places[i], places[j]] = [places[j] ?? low, places[i] ?? low]
  }
  return places
}

/** Numbers of the case's distribution, divided by a power of two. */
function divided(divide: Count, { next, value, dims, shape }: DrawRequest): Float64Array {
  const scale = 2 ** -Math.round(Math.log2(evaluateCount(divide, dims) ?? 1) / 2)
  return filled(shape, () => scale * value(next))
}

function packedRows({ role, batch }: Packed, { dims, shape }: DrawRequest, sequences: Sequences): Float64Array {
  const count = evaluateCount(batch, dims) ?? 1
  if (sequences === 'ragged') {
    switch (role) {
      case 'lengths':
        return filled(shape, raggedLength)
      case 'starts':
        return filled(shape, raggedStart)
      case 'sequences':
        return filled(shape, (i) => placeOf(i, count)[0])
      case 'positions':
        return filled(shape, (i) => placeOf(i, count)[1])
    }
  }
  const { rows } = sequences
  const values = {
    lengths: () => rows,
    starts: (i: number) => rows * i,
    sequences: (i: number) => (i < rows * count ? Math.floor(i / rows) : -1),
    positions: (i: number) => (i < rows * count ? i % rows : 0),
  }
  return filled(shape, values[role])
}
