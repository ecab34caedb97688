/** LRU cache of values that are expensive to make, such as programs by shape. */
import { HeddleError } from '../../errors.js'

export interface Cache<T> {
  get(key: string, make: () => Promise<T>): Promise<T>
  /** Evicts all values, or all but one. Resolves when they are released. */
  clear(but?: string): Promise<void>
}

/** Caches the most recently used values. Values hold memory until released; eviction releases them. A value that cannot be made is not cached. */
export function releasingCache<T extends { release(): void }>(capacity: number): Cache<T> {
  const entries = new Map<string, Promise<T>>()
  const evict = (value: Promise<T>): Promise<void> =>
    value.then(
      (made) => made.release(),
      () => {},
    )
  return {
    get(key, make) {
      const value = entries.get(key) ?? make()
      entries.delete(key)
      entries.set(key, value)
      value.catch(() => {
        if (entries.get(key) === value) entries.delete(key)
      })
      for (const [oldest, stale] of entries) {
        if (entries.size <= capacity) break
        entries.delete(oldest)
        void evict(stale)
      }
      return value
    },
    async clear(but) {
      const evicted = [...entries].filter(([key]) => key !== but)
      for (const [key] of evicted) entries.delete(key)
      await Promise.all(evicted.map(([, value]) => evict(value)))
    },
  }
}

/** Gets a value of a cache. If device memory is too short to make it, evicts all cached values and retries. No run may be using them then. */
export const makingRoom = <T>(cache: Cache<T>, key: string, make: () => Promise<T>): Promise<T> =>
  cache.get(key, make).catch(async (error: unknown) => {
    if (!(error instanceof HeddleError) || !['states.memory', 'device.memory'].includes(error.code)) throw error
    await cache.clear()
    return cache.get(key, make)
  })
