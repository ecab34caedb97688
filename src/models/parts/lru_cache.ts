/** Values that are expensive to make, kept while they recur: programs by their shape. */
import { HeddleError } from '../../errors.js'

export interface Cache<T> {
  get(key: string, make: () => Promise<T>): Promise<T>
  /** Evicts all values, or all but one. Resolves when they are gone. */
  clear(but?: string): Promise<void>
}

/** Keeps the most recently used values, which hold memory until they are released: evicted, they are. One that cannot be made is not kept. */
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

/** A value of a cache; where device memory is too short to make it, what the cache keeps makes room first. No run may use that then. */
export const makingRoom = <T>(kept: Cache<T>, key: string, make: () => Promise<T>): Promise<T> =>
  kept.get(key, make).catch(async (error: unknown) => {
    if (!(error instanceof HeddleError) || !['states.memory', 'device.memory'].includes(error.code)) throw error
    await kept.clear()
    return kept.get(key, make)
  })
