/** Instructions of constructs per element, beside those of its value. Counts are estimates from the device headers that implement them. */
import type { Expr } from '../ir/expr.js'
import type { UserMonoid } from '../ir/user_monoid.js'
import type { Reduction } from '../schedule/divided/reduction.js'
import type { PassStmt, RowDef } from '../schedule/normalise/normal.js'
import { type Counting, instructionsOf } from './operations.js'

/** Steps in which the lanes of a warp combine what they have: five exchanges and combinations, twice in a block. */
export const teamInstructions = 20

/** Elements of a chunk. */
const chunkElements = 8

const noSizes = { dims: {}, attrs: {} }
const eachOf: Counting = { loaded: () => 0, shared: new Set(), once: 1 }
const total = (values: readonly Expr[]): number => values.reduce((sum, value) => sum + instructionsOf(value, noSizes, eachOf), 0)

const ofMonoid = (monoid: string | UserMonoid): number => {
  // Sums are scaled once per chunk of about eight elements, each of which has its terms beside the maximum.
  if (typeof monoid !== 'string' && monoid.shift !== undefined)
    return 2 + monoid.shift.scaled.length + total(monoid.shift.scaled) / chunkElements
  if (typeof monoid !== 'string') return total(monoid.combine)
  if (monoid === 'argmax' || monoid === 'argmin') return 4
  // The larger of two numbers is NaN if either is.
  return monoid === 'max' || monoid === 'min' ? 2 : 1
}

/** Of a reduction as a statement of a kernel. */
export const reducing = (stmt: Reduction): number => ofMonoid(stmt.monoid)

/** Of a row's element, if the threads of a row compute it together: about five exchanges for each chunk of eight. */
export function scanning(row: RowDef): number {
  if (row.kind !== 'scanned') return 0
  if (typeof row.monoid !== 'string' && 'next' in row.monoid) return total(row.monoid.next) + 2
  return 4 * ofMonoid(row.monoid)
}

/** Of a statement of a pass. */
export function combining(s: PassStmt): number {
  switch (s.kind) {
    case 'reduce':
    case 'merge':
      return ofMonoid(s.monoid)
    case 'histogram':
    case 'counts':
      return 8
    case 'sharedRow':
      return 2
    case 'topK':
      return 12
    // A bitonic network of about a thousand elements: 50 exchanges of pairs.
    case 'argsort':
      return 200
    case 'loopStore':
      return 0
  }
}
