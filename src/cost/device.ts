/**
 * Devices of the cost model: their rates, each with its source. Prices of launches (launch.ts) and of graph nodes (step.ts) follow from them.
 */
import { usageError } from '../errors.js'

/** Storage types of activations and weights a plan can be priced in. */
export const priceTypes = ['f32', 'f16', 'bf16'] as const
export type PriceType = (typeof priceTypes)[number]

/** Rates of a device for kernels that are not matmuls. */
export interface WalkRates {
  readonly multiprocessors: number
  /** Instructions of single threads per second, as all multiprocessors issue them in arithmetic of float32. */
  readonly issue: number
  /** Bytes per second of accesses that miss the memory of a multiprocessor, and of those that hit it. */
  readonly cache: number
  readonly near: number
  /** Bytes that the shared cache, and the memory of one multiprocessor, hold for later accesses. */
  readonly cacheBytes: number
  readonly nearBytes: number
  /** Seconds until a load returns, and those of a walk whose results a later walk or a store awaits. */
  readonly access: number
  readonly walk: number
  /** Threads of a multiprocessor that run at once, in kernels of few registers. */
  readonly threads: number
}

/** Parameters of a device in the model. */
export interface CostDevice {
  /** Bytes per second. */
  readonly bandwidth: number
  /** Operations per second: in a storage type of floats, and on int8. */
  readonly peak: Readonly<Record<PriceType | 'i8', number>>
  /** Share of the peak of 16-bit floats that main loops without warpgroup instructions reach. */
  readonly warps: number
  /** Seconds before a step moves a byte, and those of a step with a matmul, whose pipeline has to fill and drain. */
  readonly launch: number
  readonly product: number
  readonly rates: WalkRates
}

/**
 * Inside a CUDA graph on an H200, from whole passes of BERT-base over one sequence of 32 tokens, in f16: 144 fewer row kernels save 0.179 ms. In
 * a pass with 96 matmuls, fused or not, launches and bytes leave 2.8 us per matmul unexplained.
 */
const graphs = { launch: 1.2e-6, product: 4.0e-6 } as const

/**
 * Of an H200, at 1.755 GHz. Issue: 132 multiprocessors x 128 lanes x 0.7, the share that a depthwise convolution with SiLU in exact forms
 * reaches (52 instructions per element, 67 million elements, 165 us). Near memory: 128 bytes per clock and multiprocessor. The shared cache: a transpose without tiles, which
 * reads 32 bytes for each 2, in 138 us. A norm of 32 rows, two walks, takes 2.35 us.
 */
const h200Rates: WalkRates = {
  multiprocessors: 132,
  issue: 2.1e13,
  cache: 5.0e12,
  near: 2.4e13,
  cacheBytes: 50e6,
  nearBytes: 128e3,
  access: 0.5e-6,
  walk: 0.5e-6,
  threads: 2048,
}

const devices = {
  /**
   * Measured: a large copy, an 8192^3 matmul; f32 is CUDA-core arithmetic. Tensor cores multiply int8 twice as fast as halves. Three matmuls of
   * 4096 x 768 by 768 x 768 in one kernel take 28 us more than stacked: 304e12 operations per second.
   */
  h200: {
    bandwidth: 4.26e12,
    peak: { f32: 60e12, f16: 751e12, bf16: 751e12, i8: 1502e12 },
    warps: 0.4,
    ...graphs,
    rates: h200Rates,
  },
  /**
   * NVIDIA's data sheet of the A100 80 GB SXM: peaks, not measurements, so times are optimistic. Launches are the H200's. Its 108 multiprocessors
   * issue half as much per clock of 1.41 GHz.
   */
  a100: {
    bandwidth: 2.039e12,
    peak: { f32: 19.5e12, f16: 312e12, bf16: 312e12, i8: 624e12 },
    warps: 1,
    ...graphs,
    rates: { ...h200Rates, multiprocessors: 108, issue: 0.7e13, cache: 3.4e12, near: 1.9e13, cacheBytes: 40e6 },
  },
  /** Not measured: orders of magnitude of one CPU core that runs threads as fibers. Arithmetic dominates. */
  simt: {
    bandwidth: 1e9,
    peak: { f32: 1e8, f16: 5e7, bf16: 5e7, i8: 1e8 },
    warps: 1,
    launch: 1e-5,
    product: 1e-5,
    rates: {
      multiprocessors: 1,
      issue: 5e8,
      cache: 1e9,
      near: 1e10,
      cacheBytes: 1e6,
      nearBytes: 32e3,
      access: 0,
      walk: 0,
      threads: 1,
    },
  },
} as const satisfies Readonly<Record<string, CostDevice>>

/** Prices are sums of floats: a difference of fewer seconds is rounding, not a gain. */
export const leastGain = 1e-12

export const costDevices = Object.keys(devices) as readonly (keyof typeof devices)[]

/** @throws usage `cost.device` naming the known devices */
export function costDevice(name: string): CostDevice {
  const found = costDevices.find((known) => known === name)
  if (found === undefined)
    throw usageError('cost.device', `no cost model of device ${name}`, { hint: `known: ${costDevices.join(', ')}` })
  return devices[found]
}
