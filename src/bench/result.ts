/** What the benchmark measures, as `--json` prints it and as the tables and the report show it. Fields are added, not removed. */
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
  /** What runs: an instance key, or `matmul` and what it multiplies. */
  readonly kernel: string
  /** How often it runs in a forward pass. */
  readonly count: number
  readonly milliseconds: number
}

export interface EncoderTimes extends Shape {
  readonly plan: string
  readonly meanLength: number
  /** Of one forward pass. */
  readonly milliseconds: Summary
  readonly kernels: number
  readonly matmuls: number
  readonly captured: boolean
  readonly memory: Footprint
  /** Of all steps: bytes of the buffers they touch, arithmetic of the matmuls. */
  readonly work: { readonly bytes: number; readonly flops: number }
  /** What the batch asks for, whatever the plan does. */
  readonly workload: Workload
  /** Undefined where the device's ceilings are not known, and then so is `fraction`. */
  readonly floor: Floor | undefined
  /** Floor over median: 1 is as fast as the device allows. */
  readonly fraction: number | undefined
  readonly rotation: Rotation
  /** Time by kernel, longest first. */
  readonly profile: readonly StepTime[] | undefined
}

export interface PeerTimes extends Shape {
  /** How the peer runs the encoder: `graph`. */
  readonly way: string
  /** Of one forward pass, token ids to last hidden state; undefined where the way failed. */
  readonly milliseconds: Summary | undefined
  /** Why there are no times. */
  readonly error: string | undefined
}

export interface Peers {
  readonly framework: 'torch'
  /** Versions and GPU, as the peer states them. */
  readonly about: Readonly<Record<string, string>>
  readonly times: readonly PeerTimes[]
  /** Why there are none or why they end early. */
  readonly problem: string | undefined
}

export interface PeerRatio extends Shape {
  readonly plan: string
  /** The fastest peer. */
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
  /** True if a random mask over pairs of tokens was read beside them. */
  readonly masked?: true
  readonly results: readonly EncoderTimes[]
  /** Undefined when no peer was asked for. */
  readonly peers: Peers | undefined
  /** Each plan beside the fastest peer of its shape, where there is one. */
  readonly ratios: readonly PeerRatio[]
}

/** `32x128` */
export const shapeName = ({ batch, seq }: Shape): string => `${batch}x${seq}`

/** The peer that is fastest at a shape. */
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
