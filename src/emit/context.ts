/** State of the emission of one program: the kind of loop over a row, the offsets declared so far, and the prefetched loads. */
import type CodeBlockWriter from 'code-block-writer'
import type { PassRow } from '../schedule/passes.js'
import type { Scope } from './expression.js'
import type { RowStarts, WholeRows } from './offsets.js'
import type { Own } from './user_monoids.js'

/**
 * The loop over the chunks of a row: `kept` holds all of them in registers, `reread` processes one after the other, `single` has one per thread.
 */
export type Walk = 'kept' | 'reread' | 'single'

export interface PassContext extends Scope {
  readonly writer: CodeBlockWriter
  readonly walk: Walk
  readonly starts: RowStarts
  /** Name of the struct of a user monoid or recurrence. */
  readonly ownName: (own: Own) => string
  /** Accesses that need no check of their own in a whole row; absent if a thread has one chunk only. */
  readonly whole?: WholeRows
  /** Elements per chunk, one entry for each width that the source is compiled for. Chunks begin at multiples of them. */
  readonly widths: readonly number[]
  /** Set if a thread may have a chunk without elements. */
  readonly mayBeEmpty?: boolean
  /** Prefetched rows of later passes, loaded before the first pass, with the variables that hold them. */
  readonly soon: Map<PassRow, string>
}
