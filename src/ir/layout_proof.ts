/**
 * Proofs about layouts by exhaustive evaluation over a stated domain: every logical index at every combination of the
 * extents below, as far as the budget allows. Layouts are periodic in powers of two up to 32, so the extents include 1, odd
 * numbers, multiples of 32 and numbers next to these.
 */
import { findingError } from '../errors.js'
import { emptyEnv, evaluateExpr, forEachPoint } from './evaluate.js'
import { integerFunction } from './integer_function.js'
import type { Layout } from './layout.js'

export interface LayoutProof {
  /** Largest power of two R up to 32 with offset(c0 + j) = offset(c0) + j for every aligned c0 and j < R; `all` if whole rows are contiguous. */
  readonly contiguousRun: number | 'all'
  /** Largest power of two R up to 32 such that offset(c0) is a multiple of R for every c0 that is one, for all extents. */
  readonly alignedRun: number
  /** Combinations of extents that were evaluated. */
  readonly combinations: number
}

const extents = [1, 2, 3, 5, 8, 32, 33, 64]
const longestRun = 32
/** Elements evaluated in one combination: 64 x 64 and 32 x 5 x 8 x 3 fit. */
const elementBudget = 4096
/** Elements evaluated in total. */
const totalBudget = 150_000

type Numbers = Record<string, number>
/** Offset of a logical index; `values` holds the index, then the extents. */
type OffsetAt = (values: readonly number[]) => number

/** Combinations of extents for a layout of the given rank, from small to large, within a budget of elements. */
export function extentsToTry(rank: number, budget = totalBudget): number[][] {
  let combos: number[][] = [[]]
  for (let axis = 0; axis < rank; axis++) combos = combos.flatMap((combo) => extents.map((extent) => [...combo, extent]))
  const elements = (combo: readonly number[]): number => combo.reduce((a, b) => a * b, 1)
  const sized = combos.filter((combo) => elements(combo) <= elementBudget)
  // When there are more combinations than the budget allows, an odd stride samples every extent of every axis.
  const stride = Math.ceil(sized.reduce((total, combo) => total + elements(combo), 0) / budget) | 1
  return sized.filter((_, at) => at % stride === 0)
}

const describe = (values: Readonly<Numbers>): string =>
  Object.entries(values)
    .map(([name, value]) => `${name}=${value}`)
    .join(', ')

const named = (axes: readonly string[], values: readonly number[]): Numbers =>
  Object.fromEntries(axes.map((axis, i) => [axis, values[i] ?? 0]))

/** Offsets of all logical indices at the given extents, in row-major order of the index. Proves that each is in range and unique. */
function offsetsAt(layout: Layout, offsetAt: OffsetAt, extent: Numbers, shape: readonly number[]): number[] {
  const size = Number(evaluateExpr(layout.size, emptyEnv(extent)))
  const owner = new Map<number, readonly number[]>()
  const offsets: number[] = []
  forEachPoint(shape, (point) => {
    const offset = offsetAt([...point, ...shape])
    const where = (at: readonly number[]): string => `(${at.join(', ')})`
    if (!(Number.isInteger(offset) && offset >= 0 && offset < size)) {
      const place = `${where(point)} at extents ${describe(extent)}`
      throw findingError('layout.range', `layout ${layout.name}: index ${place} has offset ${offset}, outside its size ${size}`, {
        hint: 'size must cover padding: round an extent up before multiplying',
      })
    }
    const other = owner.get(offset)
    if (other !== undefined) {
      const place = `${where(point)} at extents ${describe(extent)}`
      throw findingError(
        'layout.injective',
        `layout ${layout.name}: indices ${where(other)} and ${place} share offset ${offset}`,
        {
          hint: 'different indices need different offsets',
        },
      )
    }
    owner.set(offset, [...point])
    offsets.push(offset)
  })
  return offsets
}

/** True if every aligned run of `length` in a row of `width` is contiguous. */
function runsOf(length: number, offsets: readonly number[], width: number): boolean {
  return offsets.every((offset, at) => {
    const column = at % width
    const start = offsets[at - (column % length)]
    return start !== undefined && offset === start + (column % length)
  })
}

/** True if every aligned run of `length` in a row has an offset that is a multiple of `length`. */
const alignedAt = (length: number, offsets: readonly number[], width: number): boolean =>
  offsets.every((offset, at) => (at % width) % length !== 0 || offset % length === 0)

/**
 * Proves over the domain that a layout maps different indices to different offsets inside its size, and finds its
 * contiguous run along the last axis.
 * @throws finding `layout.range` or `layout.injective` with a counterexample.
 */
export function proveLayout(layout: Layout): LayoutProof {
  const combos = extentsToTry(layout.axes.length)
  let run = longestRun
  const slots = (from: number) => new Map(layout.axes.map((axis, i) => [axis, from + i]))
  const offsetAt = integerFunction(layout.offset, { index: slots(0), dim: slots(layout.axes.length) })
  let all = true
  let aligned = longestRun
  for (const shape of combos) {
    const offsets = offsetsAt(layout, offsetAt, named(layout.axes, shape), shape)
    const width = shape.at(-1) ?? 1
    all &&= runsOf(width, offsets, width)
    while (!runsOf(run, offsets, width)) run /= 2
    while (!alignedAt(aligned, offsets, width)) aligned /= 2
  }
  return { contiguousRun: all ? 'all' : run, alignedRun: aligned, combinations: combos.length }
}
