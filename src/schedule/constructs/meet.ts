/** A barrier for the threads of a row: values read before it may be replaced after it. */
import type { Meeting } from '../normalise/normal.js'
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
