/**
 * Prices of launches in a measured search: measured where they were, interpolated between measured numbers of rows of the same kernel, and else
 * predicted by the cost model, corrected by the ratio of measured to predicted times of launches of its kind. No constants are fitted.
 */
import { median } from 'simple-statistics'
import type { Kind } from './space.js'

/** A group at one size, as it is measured: equal launches of several groups have one id. */
export interface Launch {
  readonly id: string
  /** Hash of the kernel without names and places. */
  readonly content: string
  readonly kind: Kind
  /** Extents of the kernel's dimensions, in their order. */
  readonly sizes: readonly number[]
  /** Seconds that the cost model predicts. */
  readonly model: number
}

export interface Price {
  readonly seconds: number
  readonly by: 'measured' | 'interpolated' | 'model'
}

/** Median seconds of a launch, or the reason why it cannot be timed. */
export type Measured = { readonly seconds: number } | { readonly refused: string }

/** Price of a launch that cannot be run. */
const never: Price = { seconds: Number.POSITIVE_INFINITY, by: 'measured' }

/**
 * Spread of the logarithms of measured to corrected prices that is expected before any launch of a kind is measured, and the number of launches
 * that this expectation counts as. Without any, the correction of the kind is unknown, too.
 */
const [usualSpread, usualCount, unknownSpread] = [0.4, 2, 0.9]

/** Standard deviations by which an optimistic price is below the price: one in ten is lower. */
const unlikely = 1.3

export class Prices {
  readonly #known = new Map<string, Measured>()
  /** Launches that were measured, by the hash of their kernel. */
  readonly #timed = new Map<string, { readonly launch: Launch; readonly seconds: number }[]>()
  readonly #ratios = new Map<Kind, number[]>()

  /** Adds the result of measuring a launch. */
  add(launch: Launch, measured: Measured): void {
    if (this.#known.has(launch.id)) return
    this.#known.set(launch.id, measured)
    if ('refused' in measured) return
    const same = this.#timed.get(launch.content) ?? []
    this.#timed.set(launch.content, [...same, { launch, seconds: measured.seconds }])
    const ratios = this.#ratios.get(launch.kind) ?? []
    this.#ratios.set(launch.kind, [...ratios, measured.seconds / launch.model])
  }

  has = ({ id }: Launch): boolean => this.#known.has(id)

  measured = ({ id }: Launch): Measured | undefined => this.#known.get(id)

  price(launch: Launch): Price {
    const known = this.#known.get(launch.id)
    if (known !== undefined) return 'refused' in known ? never : { seconds: known.seconds, by: 'measured' }
    const between = this.#interpolated(launch)
    if (between !== undefined) return { seconds: between, by: 'interpolated' }
    return { seconds: launch.model * this.correction(launch.kind), by: 'model' }
  }

  /** Ratio of measured to predicted times of a kind; that of all launches if none of the kind was measured, and 1 before any was. */
  correction(kind: Kind): number {
    const own = this.#ratios.get(kind) ?? []
    const all = own.length > 0 ? own : [...this.#ratios.values()].flat()
    return all.length === 0 ? 1 : median(all)
  }

  /** Seconds that a launch may take if all goes well: for one that was not measured, less than its price, as the best of its kind are. */
  optimistic(launch: Launch): number {
    const { seconds, by } = this.price(launch)
    if (by === 'measured') return seconds
    const spread = this.spread(launch.kind)
    return seconds * Math.exp(-unlikely * (by === 'model' ? spread : spread / 2))
  }

  /** Number of launches of a kind that were timed. */
  count = (kind: Kind): number => this.#ratios.get(kind)?.length ?? 0

  /** Standard deviation of the logarithms of measured to corrected prices of a kind. */
  spread(kind: Kind): number {
    const ratios = this.#ratios.get(kind) ?? []
    if (ratios.length === 0) return unknownSpread
    const correction = this.correction(kind)
    const squares = ratios.reduce((sum, ratio) => sum + Math.log(ratio / correction) ** 2, usualCount * usualSpread ** 2)
    return Math.sqrt(squares / (usualCount + ratios.length))
  }

  /** Seconds by the two nearest measured sizes of the same kernel that have fewer and more rows; undefined without them. */
  #interpolated(launch: Launch): number | undefined {
    const points = (this.#timed.get(launch.content) ?? []).flatMap((other) => {
      const rows = rowsBetween(launch.sizes, other.launch.sizes)
      return rows === undefined ? [] : [{ ...rows, seconds: other.seconds }]
    })
    const below = points.filter(({ own, other }) => other < own).sort((a, b) => b.other / b.own - a.other / a.own)[0]
    const above = points.filter(({ own, other }) => other > own).sort((a, b) => a.other / a.own - b.other / b.own)[0]
    if (below === undefined || above === undefined) return undefined
    // The two may differ in different dimensions: rows are compared by their ratio to the wanted size.
    const [low, high] = [below.other / below.own, above.other / above.own]
    const most = Math.max(below.seconds, above.seconds)
    return below.seconds + ((most - below.seconds) * (1 - low)) / (high - low)
  }
}

/** Products of the extents in which two sizes differ; undefined unless all of them are larger in one. */
function rowsBetween(
  sizes: readonly number[],
  others: readonly number[],
): { readonly own: number; readonly other: number } | undefined {
  const differing = sizes.flatMap((extent, at) => (others[at] === extent ? [] : [[extent, others[at] ?? extent] as const]))
  const grows = differing.map(([extent, other]) => other > extent)
  if (differing.length === 0 || new Set(grows).size > 1) return undefined
  const product = (of: (pair: readonly [number, number]) => number): number => differing.reduce((all, pair) => all * of(pair), 1)
  return { own: product(([extent]) => extent), other: product(([, other]) => other) }
}
