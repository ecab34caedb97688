/** Values that are expensive to make, kept while they recur: programs by their shape. */
import { HeddleError } from '../../errors.js'

export interface Cache<T> {
  get(key: string, make: () => T): T
  /** Evicts all values, or all but one. Resolves when they are gone. */
  clear(but?: string): Promise<void>
}

/** Keeps the most recently used values. A promise that rejects is not kept. */
export function lruCache<T extends Promise<unknown>>(capacity: number, evict: (value: T) => void | Promise<void>): Cache<T> {
  const entries = new Map<string, T>()
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

/** A cache of what holds memory until it is released: evicted, it is, unless it was never made. */
export const releasingCache = <T extends { release(): void }>(capacity: number): Cache<Promise<T>> =>
  lruCache(capacity, (evicted) =>
    evicted.then(
      (value) => value.release(),
      () => {},
    ),
  )

/** What `open` makes; where device memory is short, what a cache keeps makes room first. No run may use that then. */
export const makingRoom = <T>(kept: Pick<Cache<unknown>, 'clear'>, open: () => Promise<T>): Promise<T> =>
  open().catch(async (error: unknown) => {
    if (!(error instanceof HeddleError) || !['states.memory', 'device.memory'].includes(error.code)) throw error
    await kept.clear()
    return open()
  })
