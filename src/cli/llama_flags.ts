/**
 * What only LLaMA-like models are told, whoever tells it. Apart from the options of verbs, whose inferred types are long: this is part of
 * `heddle/commands`.
 */
import type { CacheType } from '../models/llama/programs.js'
import type { Rotation } from '../models/llama/weights.js'

/** Options that only models of this type have. */
export interface LlamaFlagOptions {
  /** Tokens of prompts that are read at once. */
  readonly chunk?: number | undefined
  /** How keys and values are cached. */
  readonly caches?: CacheType | undefined
  readonly rotation?: Rotation | undefined
  /** How much of what channels of activations have more than others goes into weights, by the channels file of `scales`. */
  readonly smooth?: number | undefined
  /** Rows that everything is computed for, so that results depend on nothing else that is run, bit for bit. */
  readonly invariant?: number | undefined
}
