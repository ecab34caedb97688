/** Contents of a cache, and order and time of evictions. */
import { describe, expect, test } from 'vitest'
import { releasingCache } from '../../../src/models/parts/lru_cache.js'

const openCache = (capacity: number) => {
  const evicted: string[] = []
  const cache = releasingCache<{ release(): void; readonly key: string }>(capacity)
  const get = (key: string) => cache.get(key, async () => ({ key, release: () => evicted.push(key) }))
  return { cache, evicted, get }
}

describe('a cache', () => {
  test('evicts the least recently used value, never the latest', async () => {
    const { evicted, get } = openCache(2)
    for (const key of ['a', 'b', 'a', 'c', 'd']) await get(key)
    await Promise.resolve()
    expect(evicted).toEqual(['b', 'a'])
    const { evicted: gone, get: one } = openCache(1)
    for (const key of ['a', 'a', 'b']) expect(await one(key)).toMatchObject({ key })
    expect(gone).toEqual(['a'])
  })

  test('computes a value once, and again after a failure', async () => {
    const { cache, get } = openCache(2)
    const first = get('a')
    expect(get('a')).toBe(first)
    await expect(cache.get('b', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(await get('b')).toMatchObject({ key: 'b' })
  })

  test('is empty when clearing has resolved', async () => {
    const { cache, evicted, get } = openCache(3)
    const first = get('a')
    void get('b')
    await cache.clear()
    expect(evicted).toEqual(['a', 'b'])
    expect(get('a')).not.toBe(first)
  })
})
