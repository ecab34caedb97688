/** Error of a run that computed values other than finite numbers, which make its results meaningless. */
import { findingError, HeddleError } from '../../errors.js'
import type { Cache } from './lru_cache.js'

export const noNumbers = (message: string): HeddleError =>
  findingError('run.value', message, {
    hint: 'an activation is too large for the dtype the model runs in, or its weights are damaged: try f32',
  })

/** Awaits a run. If it computed values other than finite numbers, clears the cache: they remain in KV caches and other states. */
export const orForget = <T>(cache: Pick<Cache<unknown>, 'clear'>, run: Promise<T>): Promise<T> =>
  run.catch(async (error: unknown) => {
    if (error instanceof HeddleError && error.code === 'run.value') await cache.clear()
    throw error
  })
