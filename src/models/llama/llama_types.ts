/** Types of the LLaMA pipeline: options of loading and of runs, and the pipeline itself. */

import type { CacheType } from '../../../specs/graphs/llama_caches.js'
import type { ChannelMaxima } from '../../quant/index.js'
import { generationNames } from '../decoding/generation_names.js'
import type { GenerationOptions } from '../decoding/generation_options.js'
import type { NamesOf } from '../parts/known_options.js'
import { type BatchOptions, batchNames, type ModelOptions, type TextModel } from '../parts/options.js'
import type { TokenCase } from '../parts/token_cases.js'
import type { LlamaConfig } from './config.js'
import type { LlamaResult, LlamaTokens } from './results.js'
import type { Score } from './score.js'
import type { Rotation } from './weights.js'

export interface LlamaOptions extends ModelOptions {
  /** Storage of cached keys and values; `dtype` by default. */
  readonly caches?: CacheType
  /** Precision of RoPE's inverse frequencies; rounded to the type of the checkpoint by default. */
  readonly rotation?: Rotation
  /** Smoothing of outlier channels of activations into weights, for plans that quantise rows. */
  readonly smooth?: { readonly channels: ChannelMaxima; readonly alpha?: number | undefined }
}

interface RunOptions extends BatchOptions {
  /** Prompt tokens read per pass. 2,048 by default; 512 for scores, which need logits of each token. */
  readonly chunk?: number
  /**
   * Fixed number of rows that everything is computed for, used or not. Caches have `capacity` positions, at most 4,096 by default, and
   * prompts are read in passes of one sequence and at most 512 tokens. Results are then bit-identical regardless of the number, length and
   * order of cases, chunking, and cached prefixes. They may change with the number given here, and with the capacity.
   */
  readonly invariant?: number
  /** Positions of the caches, for texts that later runs extend: these find the same caches. As many as the run needs by default. */
  readonly capacity?: number
}

export interface LlamaGenerateOptions extends GenerationOptions, RunOptions {
  /**
   * True to skip the prefix that a prompt shares with the previous run's text in the same row of caches of the same shape. Reading a text
   * in other pieces may change the last bits of results.
   */
  readonly reuse?: boolean
  /** Called before each batch with the number of its prompt tokens found in the caches. */
  readonly reused?: (tokens: number) => void
}

export interface ScoreOptions extends RunOptions {
  /** Positions whose logits are returned too. */
  readonly places?: readonly number[]
}

const runNames: NamesOf<RunOptions> = { ...batchNames, chunk: true, invariant: true, capacity: true }
export const generateNames: NamesOf<LlamaGenerateOptions> = { ...generationNames, ...runNames, reuse: true, reused: true }
export const scoreNames: NamesOf<ScoreOptions> = { ...runNames, places: true }

export interface Llama extends TextModel<LlamaConfig, LlamaGenerateOptions, LlamaResult, LlamaTokens> {
  readonly rotation: Rotation
  /** Device memory of the weights. */
  readonly weightBytes: number
  /**
   * Scores each case by its likelihood under the model.
   * @throws like `generate`; usage `run.sequence` for a case of one token, `run.place` for a position that a case does not have
   */
  score(cases: readonly TokenCase[], options?: ScoreOptions): Promise<Score[]>
}
