/** What `heddle bench llama` measures, as `--json` prints it and its tables show it. Fields are added, not removed. */
import type { NativeDeviceInfo } from '../../runtime/native.js'
import type { Ceilings, Floor } from '../floor.js'
import type { Shape, StepTime } from '../result.js'
import type { Summary } from '../statistics.js'
import type { Comparison } from '../target/baseline.js'
import type { Loading, TimedModel } from './model.js'

/** What a shape takes on the device. */
export interface LlamaMemory {
  readonly weightBytes: number
  /** Caches and what else steps keep. */
  readonly stateBytes: number
  readonly arenaBytes: number
  /** Of weights and caches by the configuration, and of the arena. */
  readonly expectedBytes: number
  /** By which the device's free memory became less; on the CPU device other processes take of it too. */
  readonly usedBytes: number
  /** Of weights, states and arena to what is expected. */
  readonly ratio: number
}

export interface LlamaTimes extends Shape {
  readonly what: 'step' | 'prompt'
  readonly plan: string
  /** One step, or all prompts, on the host's clock. */
  readonly milliseconds: Summary
  readonly samples: readonly number[]
  /** One step on the device's clock, without what the host does between replays; undefined of prompts. */
  readonly device: Summary | undefined
  /** Generated, or read. */
  readonly tokensPerSecond: number
  /** Undefined where the device's ceilings are not known, and then so is `fraction`. */
  readonly floor: Floor | undefined
  readonly fraction: number | undefined
  /** Kernels and matmuls of a step, or of the first pass over prompts. */
  readonly launches: number
  readonly captured: boolean
  /**
   * Runs of steps on the host's clock, warm-up included, and those of them that the device was given while it had the one before: where that
   * is all but the first of each window, it never waited for the host. The CPU device computes what it is given at once, and has none.
   * Undefined of prompts.
   */
  readonly begun: { readonly runs: number; readonly ahead: number } | undefined
  /** Milliseconds until programs for the shape were made, recorded where the device records, and memory was there. */
  readonly setup: number
  readonly capacity: number
  /** Tokens that are read at once. */
  readonly chunk: number
  readonly memory: LlamaMemory
  /** True if what a step reads is more than twice the device's cache; undefined where that is not known. */
  readonly evicts: boolean | undefined
  readonly profile: readonly StepTime[] | undefined
}

export interface LlamaPlanTimes {
  readonly plan: string
  readonly products: TimedModel['products']
  readonly loading: Loading
  readonly times: readonly LlamaTimes[]
}

/** What a peer takes for a shape, and its own floor: what it reads, at the rate that it copies bytes. */
export interface LlamaPeerTimes extends Shape {
  readonly what: LlamaTimes['what']
  readonly products: TimedModel['products']
  /** How the peer runs the model: `compile`. */
  readonly way: string
  /** One step, or all prompts; undefined where the way failed. */
  readonly milliseconds: Summary | undefined
  readonly floor: number | undefined
  /** The most memory it held, in bytes. */
  readonly peakBytes: number | undefined
  /** Why there are no times. */
  readonly error: string | undefined
}

export interface LlamaPeers {
  readonly framework: 'torch'
  /** Versions, GPU and the rate of a copy, as the peer states them. */
  readonly about: Readonly<Record<string, string>>
  readonly times: readonly LlamaPeerTimes[]
  /** Why there are none or why they end early. */
  readonly problem: string | undefined
}

export interface BenchLlamaResult {
  readonly device: NativeDeviceInfo
  readonly ceilings: Ceilings | undefined
  readonly shape: string
  readonly dtype: 'f32' | 'f16' | 'bf16'
  readonly weights: 'random' | 'checkpoint'
  /** Steps of a sample. */
  readonly window: number
  readonly plans: readonly LlamaPlanTimes[]
  /** Undefined when no peer was asked for. */
  readonly peers: LlamaPeers | undefined
  /** Undefined where no baseline was given. */
  readonly comparisons: readonly Comparison[] | undefined
}

/** The fastest peer of the same products at a shape. */
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
