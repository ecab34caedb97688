/** What is known while the passes of one program are written: how rows are walked, where they start, and what was read of them already. */
import type CodeBlockWriter from 'code-block-writer'
import type { PassRow } from '../schedule/passes.js'
import type { Scope } from './expression.js'
import type { RowStarts, WholeRows } from './offsets.js'

/** How the chunks of a row are walked: all of them held by the team, one after the other, or one by this thread. */
export type Walk = 'kept' | 'reread' | 'single'

export interface PassContext extends Scope {
  readonly writer: CodeBlockWriter
  readonly walk: Walk
  readonly starts: RowStarts
  /** The accesses that need no check of their own in a whole row; absent where a thread has one chunk only. */
  readonly whole?: WholeRows
  /** Rows of later passes that were read before the first, and the variables that hold them. */
  readonly soon: Map<PassRow, string>
}
