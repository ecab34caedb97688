/**
 * How many blocks of a kernel a multiprocessor holds at once, from what ptxas reports: what the page says beside registers. The limits are those
 * of the CUDA C++ Programming Guide (Compute Capabilities, Technical Specifications); how registers and shared memory are handed out is what
 * `cuda_occupancy.h` of the CUDA toolkit says: registers to warps, each in one of four parts of the multiprocessor, in units of 256; shared
 * memory to blocks, in units of 128 bytes, beside 1 KiB that the system keeps for each.
 */

interface Limits {
  readonly registers: number
  readonly warps: number
  readonly blocks: number
  /** Bytes of a multiprocessor. */
  readonly sharedBytes: number
}

const kibibyte = 1024

const limits: ReadonlyMap<string, Limits> = new Map([
  ['sm_80', { registers: 65_536, warps: 64, blocks: 32, sharedBytes: 164 * kibibyte }],
  ['sm_90', { registers: 65_536, warps: 64, blocks: 32, sharedBytes: 228 * kibibyte }],
])

const warpThreads = 32
const parts = 4
const registerUnit = 256
const sharedUnit = 128
const systemBytes = kibibyte

const raised = (value: number, unit: number): number => Math.ceil(value / unit) * unit

export interface Occupancy {
  /** Blocks that a multiprocessor holds at once; 0 of a kernel that cannot be launched with so many threads. */
  readonly blocks: number
  /** Warps of those blocks, as a part of the most that a multiprocessor can hold. */
  readonly share: number
  /** What allows no more of them. */
  readonly limitedBy: readonly string[]
}

/**
 * @param threads of a block
 * @param sharedBytes of a block, static and dynamic
 * @returns undefined of an architecture whose limits are not listed
 */
export function occupancyOf(arch: string, threads: number, registers: number, sharedBytes: number): Occupancy | undefined {
  const of = limits.get(arch.replace(/a$/, ''))
  if (of === undefined) return undefined
  const warps = Math.ceil(threads / warpThreads)
  const ofWarp = raised(registers * warpThreads, registerUnit)
  // A launch is refused where its warps, spread over all parts alike, do not fit.
  const fits = ofWarp * raised(warps, parts) <= of.registers
  const warpsByRegisters = Math.floor(of.registers / parts / ofWarp) * parts
  const bounds = [
    ['registers', fits ? Math.floor(warpsByRegisters / warps) : 0],
    ['threads', Math.floor(of.warps / warps)],
    ['blocks', of.blocks],
    ['shared memory', Math.floor(of.sharedBytes / raised(sharedBytes + systemBytes, sharedUnit))],
  ] as const
  const blocks = Math.min(...bounds.map(([, bound]) => bound))
  return {
    blocks,
    share: (blocks * warps) / of.warps,
    limitedBy: bounds.flatMap(([name, bound]) => (bound === blocks ? [name] : [])),
  }
}
