/** Results of the benchmark, as printed by `--json` and shown in tables and the report. Fields are added, not removed. */
import type { NativeDeviceInfo } from '../runtime/native.js'
import type { Ceilings, Floor, Workload } from './floor.js'
import type { Footprint } from './memory.js'
import type { Rotation } from './rotation.js'
import type { Summary } from './statistics.js'

export interface Shape {
  readonly batch: number
  readonly seq: number
}

export interface StepTime {
  /** Instance key, or `matmul` and the name of its node. */
  readonly kernel: string
  /** Runs per forward pass. */
  readonly count: number
  readonly milliseconds: number
}

export interface EncoderTimes extends Shape {
  readonly plan: string
  readonly meanLength: number
  /** Time of one forward pass. */
  readonly milliseconds: Summary
  readonly kernels: number
  readonly matmuls: number
  readonly captured: boolean
  readonly memory: Footprint
  /** Totals over all steps: bytes of accessed buffers, arithmetic of matmuls. */
  readonly work: { readonly bytes: number; readonly flops: number }
  /** Work of the batch, independent of the plan. */
  readonly workload: Workload
  /** Undefined, like `fraction`, if the device's ceilings are unknown. */
  readonly floor: Floor | undefined
  /** Floor over median; 1 is the fastest that the device allows. */
  readonly fraction: number | undefined
  readonly rotation: Rotation
  /** Time by kernel, longest first. */
  readonly profile: readonly StepTime[] | undefined
}

export interface PeerTimes extends Shape {
  /** Mode in which the peer runs the encoder: `graph`. */
  readonly way: string
  /** Time of one forward pass, token ids to last hidden state; undefined if the mode failed. */
  readonly milliseconds: Summary | undefined
  /** Reason for missing times. */
  readonly error: string | undefined
}

export interface Peers {
  readonly framework: 'torch'
  /** Versions and GPU, as reported by the peer. */
  readonly about: Readonly<Record<string, string>>
  readonly times: readonly PeerTimes[]
  /** Reason for missing or incomplete times. */
  readonly problem: string | undefined
}

export interface PeerRatio extends Shape {
  readonly plan: string
  /** Mode of the fastest peer. */
  readonly way: string
  /** Median of the plan over median of the peer: below 1 the plan is faster. */
  readonly ratio: number
}

export interface BenchEncoderResult {
  readonly device: NativeDeviceInfo
  readonly ceilings: Ceilings | undefined
  readonly config: string
  readonly dtype: 'f32' | 'f16' | 'bf16'
  readonly lengths: string
  /** True if a random mask over pairs of tokens was applied in addition. */
  readonly masked?: true
  readonly results: readonly EncoderTimes[]
  /** Undefined if no peer was requested. */
  readonly peers: Peers | undefined
  /** Ratio of each plan to the fastest peer of its shape, if any. */
  readonly ratios: readonly PeerRatio[]
}

/** `32x128` */
export const shapeName = ({ batch, seq }: Shape): string => `${batch}x${seq}`

/** Fastest peer at a shape. */
export function fastestPeer(
  peers: Peers | undefined,
  { batch, seq }: Shape,
): (PeerTimes & { milliseconds: Summary }) | undefined {
  const timed = (peers?.times ?? []).flatMap((times) => {
    const { milliseconds } = times
    return milliseconds !== undefined && times.batch === batch && times.seq === seq ? [{ ...times, milliseconds }] : []
  })
  return timed.sort((a, b) => a.milliseconds.median - b.milliseconds.median)[0]
}

export const ratiosOf = (results: readonly EncoderTimes[], peers: Peers | undefined): PeerRatio[] =>
  results.flatMap((times) => {
    const { plan, batch, seq } = times
    const fastest = fastestPeer(peers, times)
    if (fastest === undefined) return []
    return [{ plan, batch, seq, way: fastest.way, ratio: times.milliseconds.median / fastest.milliseconds.median }]
  })
