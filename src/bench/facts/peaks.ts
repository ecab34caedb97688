/**
 * What a GPU computes at most, by its attributes: multiprocessors, their highest clock, and what one of their generation does in a clock.
 * No kernel is faster than that; what a large product attains is less, which a measurement tells (probe.ts).
 */
import type { NativeDeviceInfo } from '../../runtime/native.js'
import type { Arithmetic } from '../floor.js'

type Rates = Readonly<Partial<Record<Arithmetic, number>>>

/**
 * Multiplications and additions a clock of one multiprocessor, dense, by compute capability: CUDA C++ programming guide (arithmetic
 * throughput) for float32, the architecture white papers for tensor cores with float32 sums.
 */
const rates: readonly { readonly from: number; readonly perClock: Rates }[] = [
  { from: 12, perClock: { f32: 256, f16: 1024, bf16: 1024, i8: 2048 } },
  { from: 10, perClock: { f32: 256, f16: 8192, bf16: 8192, i8: 16_384 } },
  { from: 9, perClock: { f32: 256, f16: 4096, bf16: 4096, i8: 8192 } },
  { from: 8.6, perClock: { f32: 256, f16: 1024, bf16: 1024, i8: 2048 } },
  { from: 8, perClock: { f32: 128, f16: 2048, bf16: 2048, i8: 4096 } },
  { from: 7.5, perClock: { f32: 128, f16: 1024, i8: 2048 } },
  { from: 7, perClock: { f32: 128, f16: 1024 } },
]

/** What came after the newest generation that is known here may do more: nothing is said of it. */
const newest = 13

/** Multiplications and additions a second by storage type; empty where clock or generation are not known. */
export function peaksByAttributes({ computeCapability, multiprocessors, clockHz }: NativeDeviceInfo): Rates {
  const capability = Number(computeCapability ?? Number.NaN)
  if (clockHz === undefined || Number.isNaN(capability) || capability >= newest) return {}
  const perClock = rates.find(({ from }) => capability >= from)?.perClock ?? {}
  return Object.fromEntries(Object.entries(perClock).map(([dtype, rate]) => [dtype, rate * multiprocessors * clockHz]))
}
