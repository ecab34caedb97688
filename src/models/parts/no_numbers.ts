/** What a run ends with that computed values which are no numbers: what follows from them says nothing. */
import { findingError, type HeddleError } from '../../errors.js'

export const noNumbers = (message: string): HeddleError =>
  findingError('run.value', message, {
    hint: 'an activation is too large for the dtype the model runs in, or its weights are damaged: try f32',
  })
