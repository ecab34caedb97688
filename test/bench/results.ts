/** A model small enough to be run by its bodies, and a benchmark result with chosen numbers for tests of its display. */
import {
  type BenchEncoderResult,
  type EncoderTimes,
  type Peers,
  type PeerTimes,
  ratiosOf,
  type StepTime,
} from '../../src/bench/result.js'
import { parseBertConfig } from '../../src/models/encoder/config.js'

export const tinyConfig = parseBertConfig(
  {
    model_type: 'bert',
    vocab_size: 50,
    hidden_size: 12,
    num_hidden_layers: 2,
    num_attention_heads: 2,
    intermediate_size: 16,
    max_position_embeddings: 8,
    hidden_act: 'gelu',
  },
  'tiny',
)

/** Samples whose quartiles lie a twentieth below and a tenth above the median. */
const summary = (median: number) => ({ median, low: 0.95 * median, high: 1.1 * median, best: 0.9 * median, samples: 30 })

const mebibyte = 2 ** 20

/** A plan at a shape: 8 TFLOP and 4 GB for each millisecond of its floor on the device below. */
export function planTimes(
  plan: string,
  [batch, seq]: readonly [number, number],
  median: number,
  floor: number,
  profile: readonly StepTime[] | undefined,
): EncoderTimes {
  return {
    plan,
    batch,
    seq,
    meanLength: seq,
    milliseconds: summary(median),
    kernels: 78,
    matmuls: 96,
    captured: true,
    memory: {
      arenaBytes: 30 * mebibyte,
      lowerBound: 20 * mebibyte,
      weightBytes: 200 * mebibyte,
      stateBytes: 0,
      peakBytes: 230 * mebibyte,
      twoLargestBytes: 10 * mebibyte,
      ratio: 230 / 210,
    },
    work: { bytes: 1e9, flops: 1e9 },
    workload: { flops: floor * 0.8e12, bytes: Math.min(floor, 0.04) * 4e9 },
    floor: { milliseconds: floor, bound: 'arithmetic' },
    fraction: floor / median,
    rotation: { passes: 1, bytes: 170 * mebibyte, evicts: true },
    profile,
  }
}

export const peerTimes = (way: string, [batch, seq]: readonly [number, number], median: number | undefined): PeerTimes => ({
  way,
  batch,
  seq,
  milliseconds: median === undefined ? undefined : summary(median),
  error: median === undefined ? 'RuntimeError: no kernel' : undefined,
})

export function benchResult(results: readonly EncoderTimes[], times?: readonly PeerTimes[]): BenchEncoderResult {
  const about = { gpu: 'NVIDIA H200', torch: '2.11.0' }
  const peers: Peers | undefined = times === undefined ? undefined : { framework: 'torch', about, times, problem: undefined }
  return {
    device: {
      kind: 'cuda',
      name: 'NVIDIA H200',
      memoryBytes: 1e11,
      memoryFreeBytes: 1e11,
      multiprocessors: 132,
      driverVersion: 0,
      runtimeVersion: 0,
      matmulVersion: 0,
    },
    ceilings: { bandwidth: 4e12, peak: { f16: 800e12, bf16: 800e12, f32: 60e12, i8: 1879e12 }, cacheBytes: 60 * mebibyte },
    config: 'bert-base',
    dtype: 'f16',
    lengths: 'full',
    results,
    peers,
    ratios: ratiosOf(results, peers),
  }
}
