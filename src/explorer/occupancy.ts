/**
 * Occupancy of a kernel: concurrent blocks per multiprocessor, from the resources that ptxas reports. Limits are from the CUDA C++
 * Programming Guide (Compute Capabilities, Technical Specifications). Allocation follows `cuda_occupancy.h` of the CUDA toolkit: registers
 * per warp in units of 256, with each warp in one of four partitions of the multiprocessor; shared memory per block in units of 128 bytes,
 * plus 1 KiB reserved by the system for each block.
 */

interface Limits {
  readonly registers: number
  readonly warps: number
  readonly blocks: number
  /** Shared memory of a multiprocessor in bytes. */
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
  /** Concurrent blocks per multiprocessor; 0 for a kernel that cannot be launched with this number of threads. */
  readonly blocks: number
  /** Warps of those blocks, as a share of the maximum of a multiprocessor. */
  readonly share: number
  /** Limiting resources. */
  readonly limitedBy: readonly string[]
}

/**
 * @param threads of a block
 * @param sharedBytes of a block, static and dynamic
 * @returns undefined for an architecture without listed limits
 */
export function occupancyOf(arch: string, threads: number, registers: number, sharedBytes: number): Occupancy | undefined {
  const of = limits.get(arch.replace(/a$/, ''))
  if (of === undefined) return undefined
  const warps = Math.ceil(threads / warpThreads)
  const ofWarp = raised(registers * warpThreads, registerUnit)
  // A launch fails if its warps, spread evenly over all partitions, do not fit.
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
