/** Results of `heddle bench llama`, as printed by `--json` and shown in tables. Fields are added, not removed. */
import type { NativeDeviceInfo } from '../../runtime/native.js'
import type { Ceilings, Floor } from '../floor.js'
import type { Shape, StepTime } from '../result.js'
import type { Summary } from '../statistics.js'
import type { Comparison } from '../target/baseline.js'
import type { Loading, TimedModel } from './model.js'

/** Device memory of a shape. */
export interface LlamaMemory {
  readonly weightBytes: number
  /** Caches and other states of steps. */
  readonly stateBytes: number
  readonly arenaBytes: number
  /** Expected size of weights and caches by the configuration, plus the arena. */
  readonly expectedBytes: number
  /** Decrease of the device's free memory; on the CPU device other processes affect it. */
  readonly usedBytes: number
  /** Ratio of weights, states and arena to the expected size. */
  readonly ratio: number
}

export interface LlamaTimes extends Shape {
  readonly what: 'step' | 'prompt'
  readonly plan: string
  /** One step, or all prompts, by the host's clock. */
  readonly milliseconds: Summary
  readonly samples: readonly number[]
  /** One step by the device's clock, without host work between replays; undefined for prompts. */
  readonly device: Summary | undefined
  /** Tokens generated, or processed in prompts. */
  readonly tokensPerSecond: number
  /** Undefined, like `fraction`, if the device's ceilings are unknown. */
  readonly floor: Floor | undefined
  readonly fraction: number | undefined
  /** Kernels and matmuls of a step, or of the first pass over prompts. */
  readonly launches: number
  readonly captured: boolean
  /**
   * Number of step replays, including warm-up, and of those enqueued while the device was still running the previous one. If that is all but
   * the first of each window, the device never waited for the host. The CPU device runs synchronously and has none. Undefined for prompts.
   */
  readonly begun: { readonly runs: number; readonly ahead: number } | undefined
  /** Milliseconds to build programs for the shape, capture them if the device supports it, and allocate memory. */
  readonly setup: number
  readonly capacity: number
  /** Tokens processed at a time. */
  readonly chunk: number
  readonly memory: LlamaMemory
  /** True if a step reads more than twice the device's cache; undefined if the cache is unknown. */
  readonly evicts: boolean | undefined
  readonly profile: readonly StepTime[] | undefined
}

export interface LlamaPlanTimes {
  readonly plan: string
  readonly products: TimedModel['products']
  readonly loading: Loading
  readonly times: readonly LlamaTimes[]
}

/** Times of a peer for a shape, and its own floor: the bytes it reads, at its own copy rate. */
export interface LlamaPeerTimes extends Shape {
  readonly what: LlamaTimes['what']
  readonly products: TimedModel['products']
  /** Mode in which the peer runs the model: `compile`. */
  readonly way: string
  /** One step, or all prompts; undefined if the mode failed. */
  readonly milliseconds: Summary | undefined
  readonly floor: number | undefined
  /** Peak memory, in bytes. */
  readonly peakBytes: number | undefined
  /** Reason for missing times. */
  readonly error: string | undefined
}

export interface LlamaPeers {
  readonly framework: 'torch'
  /** Versions, GPU and copy rate, as reported by the peer. */
  readonly about: Readonly<Record<string, string>>
  readonly times: readonly LlamaPeerTimes[]
  /** Reason for missing or incomplete times. */
  readonly problem: string | undefined
}

export interface BenchLlamaResult {
  readonly device: NativeDeviceInfo
  readonly ceilings: Ceilings | undefined
  readonly shape: string
  readonly dtype: 'f32' | 'f16' | 'bf16'
  readonly weights: 'random' | 'checkpoint'
  /** Steps per sample. */
  readonly window: number
  readonly plans: readonly LlamaPlanTimes[]
  /** Undefined if no peer was requested. */
  readonly peers: LlamaPeers | undefined
  /** Undefined without a baseline. */
  readonly comparisons: readonly Comparison[] | undefined
}

/** Fastest peer with the same matmul types at a shape. */
export function fastestLlamaPeer(
  peers: LlamaPeers | undefined,
  { what, batch, seq }: Pick<LlamaTimes, 'what' | 'batch' | 'seq'>,
  products: TimedModel['products'],
): (LlamaPeerTimes & { readonly milliseconds: Summary }) | undefined {
  const timed = (peers?.times ?? []).flatMap((times) => {
    const { milliseconds } = times
    const isSame = times.what === what && times.batch === batch && times.seq === seq && times.products === products
    return milliseconds !== undefined && isSame ? [{ ...times, milliseconds }] : []
  })
  return timed.sort((a, b) => a.milliseconds.median - b.milliseconds.median)[0]
}
