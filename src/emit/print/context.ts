/** State of the emission of one program: names and writer, and how its loops are run. */
import type CodeBlockWriter from 'code-block-writer'
import type { Walk } from '../../loop/ir.js'
import type { Multiples } from '../../schedule/access/multiples.js'
import type { Scope } from './expression.js'
import type { Own } from './user_monoids.js'

export interface PassContext extends Scope {
  readonly writer: CodeBlockWriter
  readonly walk: Walk
  /** Name of the struct of a user monoid or recurrence. */
  readonly ownName: (own: Own) => string
  /** Elements per chunk, one entry for each width that the source is compiled for. Chunks begin at multiples of them. */
  readonly widths: readonly number[]
  /** Divisors of dimensions that facts state; none by default. */
  readonly multiples?: Multiples
  /** Set if a thread may have a chunk without elements. */
  readonly mayBeEmpty?: boolean
  /** Function that stores chunks, if not `store_chunk`. */
  readonly chunkStore?: 'store_columns'
  /** Set if the launcher chooses the version for whole rows. */
  readonly isLaunched?: boolean
  /** Set inside of a version for whole rows. */
  readonly isVersioned?: boolean
}
