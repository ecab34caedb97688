/**
 * The physical floor of an encoder's forward pass: no program is faster than its arithmetic at the device's peak, nor than
 * moving its weights once at the device's bandwidth. A time alone says which plan wins; its fraction of the floor says how much
 * is left to win. The peaks are measured on the device at hand, not advertised (facts/).
 */

import type { FloatType } from '../checkpoint/convert.js'
import { dtypeInfo } from '../ir/dtype.js'
import type { BertConfig } from '../models/encoder/config.js'

/** What no implementation of the encoder layers avoids. */
export interface Workload {
  /** Additions and multiplications of the matmuls and of attention, over valid tokens only. */
  readonly flops: number
  /** Layer weights read once, hidden states of valid tokens read and written once. */
  readonly bytes: number
}

/** Storage types that products are of. */
export type Arithmetic = FloatType | 'i8'

/** What a device can do at most: facts/facts.ts finds it. */
export interface Ceilings {
  /** Bytes a second, read and written, of a large copy. */
  readonly bandwidth: number
  /** Multiplications and additions a second of a large matmul with this storage type; of float32, without tf32. */
  readonly peak: Readonly<Partial<Record<Arithmetic, number>>>
  /** Bytes of the last-level cache, where the device says it. */
  readonly cacheBytes?: number
  /** True if bandwidth and peaks are measured; otherwise they are what clocks and widths allow. */
  readonly measured?: boolean
  /** What the device's attributes allow. */
  readonly stated?: { readonly bandwidth?: number; readonly peak: Readonly<Partial<Record<Arithmetic, number>>> }
}

export interface Floor {
  readonly milliseconds: number
  /** Which of the two limits it is. */
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
 * The least time the workload takes on a device with these ceilings, were all its arithmetic of this type. Arithmetic whose peak is not
 * known counts as none: the floor is then that of its bytes.
 */
export function floorOf({ flops, bytes }: Workload, { peak, bandwidth }: Ceilings, dtype: Arithmetic): Floor {
  const [arithmetic, memory] = [(1e3 * flops) / (peak[dtype] ?? Number.POSITIVE_INFINITY), (1e3 * bytes) / bandwidth]
  return arithmetic >= memory ? { milliseconds: arithmetic, bound: 'arithmetic' } : { milliseconds: memory, bound: 'bandwidth' }
}
