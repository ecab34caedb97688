/**
 * Options that apply only to LLaMA-like models. Separate from the options of verbs, whose inferred types are long, because this type is part
 * of `heddle/commands`.
 */
import type { CacheType } from '../../specs/graphs/llama_caches.js'
import type { Rotation } from '../models/llama/weights.js'

/** Options of LLaMA-like models. */
export interface LlamaFlagOptions {
  /** Prompt tokens processed at a time. */
  readonly chunk?: number | undefined
  /** Storage of cached keys and values. */
  readonly caches?: CacheType | undefined
  readonly rotation?: Rotation | undefined
  /** Share of the activations' channel magnitudes that smoothing moves into weights, by the channels file of `scales`. */
  readonly smooth?: number | undefined
  /** Number of rows for which everything is computed, so that each result is identical bit for bit in any batch. */
  readonly invariant?: number | undefined
}
