/**
 * Price of one launch: a fixed time, then the longest of moving bytes from memory, moving sectors from caches, and issuing instructions, each at the
 * rate that the launched threads reach. It reads the mapped kernel, so that whatever a schedule does is priced, and what it repeats is, too.
 *
 * - Memory: each different element once, in whole sectors; again in every pass of rows that exceed the registers, and in every walk of columns.
 * - Caches: the sectors of every access that a warp makes. Tensors that fit the memory of a multiprocessor come from there.
 * - Instructions: those of values, conversions and addresses, as often as the loops around them run.
 */
import type { MappedKernel } from '../schedule/mapped.js'
import { accessesOf } from './accesses.js'
import type { CostDevice } from './device.js'
import { walkInstructions } from './instructions.js'
import type { Sizes } from './sizes.js'
import { bytesAtOnce, type Traffic, trafficOf } from './traffic.js'
import { walksOf } from './walks_of.js'

/** Resource that the time of a launch follows from. */
export type Bound = 'launch' | 'memory' | 'caches' | 'instructions'

export interface LaunchCost extends Traffic {
  /** Name of the kernel; parts of a split one have names of their own. */
  readonly name: string
  /** Form of its loops; the main loop of a matmul takes the place of any. */
  readonly program: MappedKernel['program']['kind'] | 'matmul'
  readonly blocks: number
  readonly threads: number
  /** Instructions of single threads. */
  readonly instructions: number
  readonly rereads: boolean
  /** Resource that most of its time is for; a matmul may be bound by its arithmetic. */
  readonly bound: Bound | 'arithmetic'
  /** Operations of a matmul. */
  readonly flops?: number
  readonly seconds: number
}

/** Threads of a multiprocessor that hide the latencies of each other's arithmetic. */
const enoughThreads = 512

/**
 * @param mapped one launch, without those in front of it
 * @param resident tensors that an earlier launch of the same op has left in the shared cache
 */
export function launchCost(
  mapped: MappedKernel,
  sizes: Sizes,
  device: CostDevice,
  resident: ReadonlySet<string> = new Set(),
): LaunchCost {
  const { rates } = device
  const walks = walksOf(mapped, sizes)
  const { blocks, threads, rereads } = walks
  const accesses = walks.walks.map((walk) => accessesOf(walk, mapped.instance, sizes))
  const active = Math.min(blocks * threads, rates.multiprocessors * rates.threads)
  const traffic = trafficOf(mapped, walks, accesses, sizes, { rates, resident, share: Math.min(1, active / (blocks * threads)) })
  const instructions = walks.walks.reduce((sum, walk) => sum + walkInstructions(walk, mapped, sizes), 0)
  const busy = Math.min(1, active / (rates.multiprocessors * enoughThreads))
  const used = Math.min(1, blocks / rates.multiprocessors)
  // The time of an access contains the first round of loads, and as much arithmetic, that few threads wait for.
  const beyond = (full: number, reached: number): number => Math.max(full, full / reached - rates.access)
  const { bytesRead, bytesWritten, memory } = traffic
  const atOnce = active * bytesAtOnce(accesses, walks.unrolled)
  const rounds = (memory * bytesRead) / Math.max(1, bytesRead + bytesWritten) / atOnce
  const times: Readonly<Record<Exclude<Bound, 'launch'>, number>> = {
    memory: Math.max(memory / device.bandwidth, (rounds - 1) * rates.access),
    caches: beyond(Math.max(traffic.cache / rates.cache, (traffic.cache + traffic.near) / rates.near), used),
    instructions: beyond(instructions / rates.issue, busy),
  }
  const awaited = walks.walks.filter(({ isAwaited }) => isAwaited).length
  const fixed = device.launch + (awaited + 1) * rates.walk
  const longest = Math.max(...Object.values(times))
  const bounds: readonly Exclude<Bound, 'launch'>[] = ['memory', 'caches', 'instructions']
  const bound = longest < fixed ? 'launch' : (bounds.find((each) => times[each] === longest) ?? 'memory')
  const { instance, program } = mapped
  return {
    ...traffic,
    name: instance.kernel.name,
    program: program.kind,
    blocks,
    threads,
    instructions,
    rereads,
    bound,
    seconds: fixed + longest,
  }
}
