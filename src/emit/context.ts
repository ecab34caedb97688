/** The state of emission of one program: the kind of loop over a row, the offsets declared so far, and which loads were issued early. */
import type CodeBlockWriter from 'code-block-writer'
import type { PassRow } from '../schedule/passes.js'
import type { Scope } from './expression.js'
import type { RowStarts, WholeRows } from './offsets.js'
import type { Own } from './user_monoids.js'

/** The loop over the chunks of a row: `kept` holds all of them in registers, `reread` takes one after the other, `single` has one a thread. */
export type Walk = 'kept' | 'reread' | 'single'

export interface PassContext extends Scope {
  readonly writer: CodeBlockWriter
  readonly walk: Walk
  readonly starts: RowStarts
  /** The name of the struct of a monoid or a recurrence of the author's. */
  readonly ownName: (own: Own) => string
  /** The accesses that need no check of their own in a whole row; absent where a thread has one chunk only. */
  readonly whole?: WholeRows
  /** Elements of a chunk, by each width that the text is compiled for; chunks begin at multiples of them. */
  readonly widths: readonly number[]
  /** Set where a thread may be handed a chunk of which no element exists. */
  readonly mayBeEmpty?: boolean
  /** Rows of later passes that are loaded before the first, and the variables that hold them. */
  readonly soon: Map<PassRow, string>
}
