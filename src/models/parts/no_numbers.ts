/** What a run ends with that computed values which are no numbers: what follows from them says nothing. */
import { findingError, HeddleError } from '../../errors.js'
import type { Cache } from './lru_cache.js'

export const noNumbers = (message: string): HeddleError =>
  findingError('run.value', message, {
    hint: 'an activation is too large for the dtype the model runs in, or its weights are damaged: try f32',
  })

/** A run, with which what is kept for others goes where it computed no numbers: they stay in caches and other states. */
export const orForget = <T>(kept: Pick<Cache<unknown>, 'clear'>, run: Promise<T>): Promise<T> =>
  run.catch(async (error: unknown) => {
    if (error instanceof HeddleError && error.code === 'run.value') await kept.clear()
    throw error
  })
