/**
 * Deterministic draws for test data. A stream is seeded by a name, so a case draws the same values regardless of earlier cases, and a failing case
 * can be run alone.
 */

/** A stream of 32-bit words. */
export type Random = () => number

/** FNV-1a (Fowler, Noll, Vo) over the characters of a name. */
function seedOf(name: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

/** Creates the stream of `name`: a Weyl sequence through the `lowbias32` finaliser (C. Wellons, Hash Prospector). */
export function random(name: string): Random {
  let state = seedOf(name)
  return () => {
    state = (state + 0x9e3779b9) | 0
    let word = state
    word = Math.imul(word ^ (word >>> 16), 0x21f0aaad)
    word = Math.imul(word ^ (word >>> 15), 0x735a2d97)
    return (word ^ (word >>> 15)) >>> 0
  }
}

/** Uniform in (0, 1). */
export const unit = (next: Random): number => (next() + 0.5) / 2 ** 32

export const uniform = (next: Random, low: number, high: number): number => low + (high - low) * unit(next)

/** An integer in [low, high]. */
export const integer = (next: Random, low: number, high: number): number => low + Math.floor(unit(next) * (high - low + 1))

/** Standard normal (Box, Muller 1958). */
export const normal = (next: Random): number => Math.sqrt(-2 * Math.log(unit(next))) * Math.cos(2 * Math.PI * unit(next))

/** One of +-1 and +-2. Zero is left out: it would hide a dropped term. */
export const smallInteger = (next: Random): number => [-2, -1, 1, 2][next() >>> 30] ?? 1
