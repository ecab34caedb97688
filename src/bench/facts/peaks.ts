/**
 * Peak arithmetic rates of a GPU from its attributes: multiprocessors, their highest clock, and operations per clock of their generation.
 * No kernel is faster than that. A large matmul attains less, which is measured (probe.ts).
 */
import type { NativeDeviceInfo } from '../../runtime/native.js'
import type { Arithmetic } from '../floor.js'

type Rates = Readonly<Partial<Record<Arithmetic, number>>>

/**
 * Dense multiplications and additions per clock and multiprocessor, by compute capability. Sources: CUDA C++ programming guide (arithmetic
 * throughput) for float32, the architecture white papers for tensor cores with float32 accumulation.
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

/** First compute capability without known rates: later generations may be faster. */
const newest = 13

/** Multiplications and additions per second, by storage type; empty if clock or generation are unknown. */
export function peaksByAttributes({ computeCapability, multiprocessors, clockHz }: NativeDeviceInfo): Rates {
  const capability = Number(computeCapability ?? Number.NaN)
  if (clockHz === undefined || Number.isNaN(capability) || capability >= newest) return {}
  const perClock = rates.find(({ from }) => capability >= from)?.perClock ?? {}
  return Object.fromEntries(Object.entries(perClock).map(([dtype, rate]) => [dtype, rate * multiprocessors * clockHz]))
}
