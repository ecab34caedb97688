/** Monoids that authors declare: associative combinations of adjacent parts of a row, in several fields. */
import { expectArguments, expectParts } from './arguments.js'
import type { Branded } from './intrinsics.js'
import type { Row } from './types.js'

type Numbers = Readonly<Record<string, number>>

/** Row operations of a monoid with the fields of F. */
export interface Monoid<F extends Numbers> {
  /**
   * All elements of a row combined: `best.reduce(n, (c) => ({ value: x(m, c), at: c })).at`. Threads combine them in an order that depends
   * on the row's length only, and not from the left, so the monoid has to be commutative.
   */
  readonly reduce: ((length: number, element: (index: number) => F) => F) & Branded<'monoid', 'reduce'>
  /**
   * Inclusive scan of a row, in the order of its elements: one row per field. It is read at
   * the index of a loop over the row.
   */
  readonly scan: ((length: number, element: (index: number) => F) => { readonly [K in keyof F]: Row }) & Branded<'monoid', 'scan'>
}

/**
 * Declares a monoid: `identity` is the neutral element of `combine(x, y)`, which combines two adjacent parts of a row, x before
 * y. It must be associative: `heddle gen` refuses its use if samples contradict this. Fields are floats, or integers if their
 * identity is written `int(0)`. It must be a const at module level. A linear recurrence h = a h + b:
 *
 *     const linear = monoid({ identity: { a: 1, b: 0 }, combine: (x, y) => ({ a: x.a * y.a, b: x.b * y.a + y.b }) })
 *     const h = linear.scan(n, (t) => ({ a: a(m, t), b: b(m, t) }))          // h.b(t)
 */
export function monoid<F extends Numbers>(config: { readonly identity: F; readonly combine: (x: F, y: F) => F }): Monoid<F> {
  expectArguments('monoid.config', 'monoid', monoid, { config: [config, 'record'] })
  expectParts('monoid.config', 'monoid', monoid, ['identity', 'combine'], config)
  const { identity, combine } = config
  expectArguments('monoid.config', 'monoid', monoid, { identity: [identity, 'record'], combine: [combine, 'function'] })
  const reduce = (length: number, element: (index: number) => F): F => {
    let total = identity
    for (let i = 0; i < length; i++) total = combine(total, element(i))
    return total
  }
  const scan = (length: number, element: (index: number) => F) => {
    let total = identity
    const all = Array.from({ length }, (_, i) => {
      total = combine(total, element(i))
      return total
    })
    const row =
      (field: string): Row =>
      (index) => {
        const value = all[index]?.[field]
        if (value === undefined) throw new RangeError(`index ${index} is outside the row of ${length} elements`)
        return value
      }
    return Object.fromEntries(Object.keys(identity).map((field) => [field, row(field)])) as { readonly [K in keyof F]: Row }
  }
  return {
    reduce: Object.assign(reduce, { heddle: { kind: 'monoid', name: 'reduce' } as const }),
    scan: Object.assign(scan, { heddle: { kind: 'monoid', name: 'scan' } as const }),
  }
}
