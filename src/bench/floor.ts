/**
 * Physical floor of an encoder's forward pass: no program is faster than its arithmetic at the device's peak, nor than
 * moving its weights once at the device's bandwidth. A time alone shows which plan is faster; its fraction of the floor shows the
 * remaining potential. The peaks are measured on this machine's device, not advertised (facts/).
 */

import type { FloatType } from '../checkpoint/convert.js'
import { dtypeInfo } from '../ir/dtype.js'
import type { BertConfig } from '../models/encoder/config.js'

/** Work that no implementation of the encoder layers can avoid. */
export interface Workload {
  /** Additions and multiplications of the matmuls and of attention, over valid tokens only. */
  readonly flops: number
  /** Layer weights read once, hidden states of valid tokens read and written once. */
  readonly bytes: number
}

/** Operand types of matmuls. */
export type Arithmetic = FloatType | 'i8'

/** Upper limits of a device, determined by facts/facts.ts. */
export interface Ceilings {
  /** Bytes per second, read and written, of a large copy. */
  readonly bandwidth: number
  /** Multiplications and additions per second of a large matmul with this storage type; float32 without tf32. */
  readonly peak: Readonly<Partial<Record<Arithmetic, number>>>
  /** Bytes of the last-level cache, if the device reports it. */
  readonly cacheBytes?: number
  /** True if bandwidth and peaks are measured; otherwise they follow from clocks and widths. */
  readonly measured?: boolean
  /** Limits by the device's attributes. */
  readonly stated?: { readonly bandwidth?: number; readonly peak: Readonly<Partial<Record<Arithmetic, number>>> }
}

export interface Floor {
  readonly milliseconds: number
  /** Limit that determines the floor. */
  readonly bound: 'arithmetic' | 'bandwidth'
}

/** Bytes of the matrices of all layers, which a forward pass reads in full. Embedding tables are only gathered from. */
export function layerBytes({ layers, hidden, inner }: BertConfig, dtype: FloatType | 'i8'): number {
  return layers * (4 * hidden ** 2 + 2 * hidden * inner) * dtypeInfo[dtype].bytes
}

/**
 * @param lengths tokens of each sequence of the batch
 * @param weights storage type of the weights
 */
export function workloadOf(
  config: BertConfig,
  lengths: readonly number[],
  dtype: FloatType,
  weights: FloatType | 'i8' = dtype,
): Workload {
  const { layers, hidden, inner } = config
  const tokens = lengths.reduce((sum, length) => sum + length, 0)
  const pairs = lengths.reduce((sum, length) => sum + length ** 2, 0)
  return {
    flops: layers * (2 * tokens * (4 * hidden ** 2 + 2 * hidden * inner) + 4 * pairs * hidden),
    bytes: layerBytes(config, weights) + 2 * tokens * hidden * dtypeInfo[dtype].bytes,
  }
}

/**
 * Shortest time of the workload on a device with these ceilings, if all its arithmetic has this type. Arithmetic with an unknown peak is
 * ignored: the floor then follows from the bytes.
 */
export function floorOf({ flops, bytes }: Workload, { peak, bandwidth }: Ceilings, dtype: Arithmetic): Floor {
  const [arithmetic, memory] = [(1e3 * flops) / (peak[dtype] ?? Number.POSITIVE_INFINITY), (1e3 * bytes) / bandwidth]
  return arithmetic >= memory ? { milliseconds: arithmetic, bound: 'arithmetic' } : { milliseconds: memory, bound: 'bandwidth' }
}
