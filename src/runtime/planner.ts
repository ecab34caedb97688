/**
 * The memory planner: places the buffers of a program in one arena so that buffers with disjoint live ranges share memory.
 * Runs once when a program is built. Buffers are placed largest first, each into the tightest gap that fits it (best fit).
 */

/** Alignment of buffers in the arena, in bytes: that of a device allocation. */
export const arenaAlignment = 256

/** A buffer and its live range in steps, both ends included. */
export interface Life {
  readonly bytes: number
  readonly first: number
  readonly last: number
}

export interface MemoryPlan {
  /** Byte offset of each buffer, in the order given. */
  readonly offsets: readonly number[]
  /** Size of the arena: the peak. */
  readonly bytes: number
  /** Peak of the bytes alive at any one step; no plan can need less. */
  readonly lowerBound: number
}

const align = (bytes: number): number => Math.ceil(bytes / arenaAlignment) * arenaAlignment

const livesMeet = (a: Life, b: Life): boolean => a.first <= b.last && b.first <= a.last

interface Placed {
  readonly life: Life
  readonly offset: number
}

/** Places every buffer. Buffers of zero bytes take no space. */
export function planMemory(lives: readonly Life[]): MemoryPlan {
  const order = lives.map((_, i) => i).sort((a, b) => size(lives, b) - size(lives, a) || a - b)
  const offsets: number[] = lives.map(() => 0)
  const placed: Placed[] = []
  for (const i of order) {
    const life = lives[i]
    if (life === undefined || life.bytes === 0) continue
    const offset = bestFit(
      align(life.bytes),
      placed.filter((other) => livesMeet(other.life, life)),
    )
    offsets[i] = offset
    placed.push({ life, offset })
  }
  return {
    offsets,
    bytes: placed.reduce((peak, { life, offset }) => Math.max(peak, offset + align(life.bytes)), 0),
    lowerBound: maxLiveBytes(lives),
  }
}

const size = (lives: readonly Life[], i: number): number => lives[i]?.bytes ?? 0

/** Offset of the smallest gap between the given buffers that fits `bytes`, or the end of the last one. */
function bestFit(bytes: number, neighbours: readonly Placed[]): number {
  let end = 0
  let best: { offset: number; room: number } | undefined
  for (const { life, offset } of [...neighbours].sort((a, b) => a.offset - b.offset)) {
    const room = offset - end
    if (room >= bytes && (best === undefined || room < best.room)) best = { offset: end, room }
    end = Math.max(end, offset + align(life.bytes))
  }
  return best?.offset ?? end
}

/** Largest sum of aligned sizes alive at one step. The sum only grows where a live range begins. */
function maxLiveBytes(lives: readonly Life[]): number {
  const alive = (step: number): number =>
    lives.reduce((sum, life) => sum + (life.first <= step && step <= life.last ? align(life.bytes) : 0), 0)
  return Math.max(0, ...lives.map((life) => alive(life.first)))
}

/** Checker of the planner: the first two buffers that are alive together and share memory, or undefined. */
export function findClash(lives: readonly Life[], offsets: readonly number[]): readonly [number, number] | undefined {
  for (const [i, a] of lives.entries()) {
    for (const [j, b] of lives.entries()) {
      if (j <= i || a.bytes === 0 || b.bytes === 0 || !livesMeet(a, b)) continue
      const [from, other] = [offsets[i] ?? 0, offsets[j] ?? 0]
      if (from < other + b.bytes && other < from + a.bytes) return [i, j]
    }
  }
  return undefined
}
