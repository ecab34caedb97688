/** What loading and running any model takes, whatever it computes. Options of one kind of model are beside these, in its own files. */

import type { FloatType } from '../../checkpoint/convert.js'
import type { Manifest } from '../../emit/manifest.js'
import type { KernelSource } from '../../runtime/library.js'
import type { NativeDevice } from '../../runtime/native.js'

export interface ModelOptions {
  readonly device: NativeDevice
  /** The device's kernel library and the manifest of the text it was built from. */
  readonly library: KernelSource
  readonly manifest: Manifest
  /** Storage type of weights, caches and activations; f32 by default. */
  readonly dtype?: FloatType
  /** `unfused` by default. */
  readonly plan?: string
  /** Ends loading; runs have signals of their own. */
  readonly signal?: AbortSignal | undefined
}

export interface BatchOptions {
  /** Cases run together. 8 by default. */
  readonly batch?: number
  readonly signal?: AbortSignal | undefined
  /** Called after each batch. */
  readonly progress?: (done: number, total: number) => void
}
