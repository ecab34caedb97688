/** Options and results common to loading and running any model. Those of one kind of model are in its own files. */

import type { FloatType } from '../../checkpoint/convert.js'
import type { Manifest } from '../../emit/manifest/manifest.js'
import type { KernelSource } from '../../runtime/library.js'
import type { NativeDevice } from '../../runtime/native.js'
import type { NamesOf } from './known_options.js'
import type { TokenCase } from './token_cases.js'

export interface ModelOptions {
  readonly device: NativeDevice
  /** The device's kernel library and the manifest of the source it was built from. */
  readonly library: KernelSource
  readonly manifest: Manifest
  /** Storage type of weights, caches and activations; f32 by default. */
  readonly dtype?: FloatType | undefined
  /** `unfused` by default. */
  readonly plan?: string
  /** Aborts loading; runs have signals of their own. */
  readonly signal?: AbortSignal | undefined
}

export interface BatchOptions {
  /** Cases run together. 8 by default. */
  readonly batch?: number
  readonly signal?: AbortSignal | undefined
  /** Called after each batch. */
  readonly progress?: (done: number, total: number) => void
}

export const batchNames: NamesOf<BatchOptions> = { batch: true, signal: true, progress: true }

/** A model whose weights are on a device. */
export interface LoadedModel<Config> {
  readonly config: Config
  readonly dtype: FloatType
  readonly plan: string
  /** Frees the weights and everything made per shape. */
  release(): void
}

/** Newly chosen tokens of a case. */
export interface StreamedTokens {
  readonly index: number
  readonly ids: readonly number[]
  /** Log-probability of each token, if requested. */
  readonly logprobs?: readonly number[]
}

/** A model that generates texts. */
export interface TextModel<Config, Options, Result, Tokens> extends LoadedModel<Config> {
  /**
   * Generates or continues texts for cases in order. Runs of one pipeline are serialised and never interleave. An open stream counts as a
   * run: awaiting another run inside its loop deadlocks.
   * @throws usage `generate.*`, `run.*` for options and cases, before anything runs; finding `run.value` if tokens were chosen from values
   * that are not finite; environment `states.memory` and `device.memory`; the signal's reason when it aborts: the run's memory is freed or
   * reused, and the next run is not affected
   */
  generate(cases: readonly TokenCase[], options?: Options): Promise<Result[]>
  /** Streams tokens as the device chooses them; the best beams are returned complete. Leaving the loop early ends the run. */
  stream(cases: readonly TokenCase[], options?: Options): AsyncGenerator<Tokens, void>
}
