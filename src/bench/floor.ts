/**
 * The physical floor of an encoder's forward pass: no program is faster than its arithmetic at the device's peak, nor than
 * moving its weights once at the device's bandwidth. A time alone says which plan wins; its fraction of the floor says how much
 * is left to win. The peaks are measured, not advertised, so a device has a floor only after somebody has measured it.
 */
import { dtypeInfo } from '../ir/dtype.js'
import type { BertConfig } from '../models/files/config.js'
import type { FloatType } from '../models/files/convert.js'
import type { NativeDeviceInfo } from '../runtime/native.js'

/** What no implementation of the encoder layers avoids. */
export interface Workload {
  /** Additions and multiplications of the matmuls and of attention, over valid tokens only. */
  readonly flops: number
  /** Layer weights read once, hidden states of valid tokens read and written once. */
  readonly bytes: number
}

/** What a device can do at most. */
export interface Ceilings {
  /** Bytes a second, read and written, of a large copy. */
  readonly bandwidth: number
  /** Multiplications and additions a second of a large matmul with this storage type. */
  readonly peak: Readonly<Record<FloatType | 'i8', number>>
  /** Bytes of the last-level cache. */
  readonly cacheBytes: number
}

export interface Floor {
  readonly milliseconds: number
  /** Which of the two limits it is. */
  readonly bound: 'arithmetic' | 'bandwidth'
}

/** f32 is CUDA-core arithmetic: tf32 is off in the benchmark. */
const devices: readonly { readonly name: RegExp; readonly ceilings: Ceilings }[] = [
  {
    name: /\bH200\b/,
    ceilings: { bandwidth: 4.26e12, peak: { f16: 790e12, bf16: 790e12, f32: 60e12, i8: 1879e12 }, cacheBytes: 60 * 2 ** 20 },
  },
]

/** The ceilings of a device; undefined for simt and for GPUs nobody has measured. */
export function ceilingsOf({ kind, name }: Pick<NativeDeviceInfo, 'kind' | 'name'>): Ceilings | undefined {
  return kind === 'cuda' ? devices.find((device) => device.name.test(name))?.ceilings : undefined
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

/** The least time the workload takes on a device with these ceilings, were all its arithmetic of this type. */
export function floorOf({ flops, bytes }: Workload, { peak, bandwidth }: Ceilings, dtype: FloatType | 'i8'): Floor {
  const [arithmetic, memory] = [(1e3 * flops) / peak[dtype], (1e3 * bytes) / bandwidth]
  return arithmetic >= memory ? { milliseconds: arithmetic, bound: 'arithmetic' } : { milliseconds: memory, bound: 'bandwidth' }
}
