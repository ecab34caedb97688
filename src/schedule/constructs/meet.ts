/** A meeting of the threads of a row: what they read before it may be replaced behind it. */
import type { Meeting } from '../normal.js'
import type { RowStatement } from './construct.js'

export const meetingStatement: RowStatement<Meeting> = {
  searches: false,
  isConditional: () => false,
  defines: () => [],
  places: () => [],
  values: () => [],
  mapValues: (s) => s,
  verify: () => undefined,
  describe: () => 'all that is replaced has been read',
}
