/** A barrier for the threads of a row as CUDA source. */
import type { Meeting } from '../../schedule/normal.js'
import type { RowText } from './construct.js'

export const meetingText: RowText<Meeting> = { write: () => 'team.meet();' }
