/** What a LLaMA pipeline is asked for and what it offers: options of loading and of runs, and the pipeline itself. */

import type { ChannelMaxima } from '../../quant/index.js'
import { generationNames } from '../decoding/generation_names.js'
import type { GenerationOptions } from '../decoding/generation_options.js'
import type { NamesOf } from '../parts/known_options.js'
import { type BatchOptions, batchNames, type ModelOptions, type TextModel } from '../parts/options.js'
import type { TokenCase } from '../parts/token_cases.js'
import type { LlamaConfig } from './config.js'
import type { CacheType } from './programs.js'
import type { LlamaResult, LlamaTokens } from './results.js'
import type { Score } from './score.js'
import type { Rotation } from './weights.js'

export interface LlamaOptions extends ModelOptions {
  /** How keys and values are cached; as `dtype` says by default. */
  readonly caches?: CacheType
  /** Inverse frequencies of the rotation: rounded to the type of the checkpoint by default. */
  readonly rotation?: Rotation
  /** Moves what channels of activations have more than others into weights, for plans that quantise rows. */
  readonly smooth?: { readonly channels: ChannelMaxima; readonly alpha?: number | undefined }
}

interface RunOptions extends BatchOptions {
  /** Tokens of prompts that are read at once. 2,048 by default; 512 where likelihoods are asked for, which take logits of each. */
  readonly chunk?: number
  /**
   * Rows that everything is computed for, whatever there is of them: caches have `capacity` places, at most 4,096 by default, and prompts
   * are read in passes of one sequence and at most 512 tokens. Then no choice can be made by how many cases there are, how long they are, how they
   * are ordered or chunked, or what is cached: a result is the same bit for bit. It may change with the number given here, and with the
   * capacity.
   */
  readonly invariant?: number
  /** Places of the caches, where texts will grow beyond this run: the next one finds the same caches. As many as the run needs by default. */
  readonly capacity?: number
}

export interface LlamaGenerateOptions extends GenerationOptions, RunOptions {
  /**
   * Whether prompts that begin as the texts of the run before, in the same rows of caches of the same shape, are read from where they
   * differ. What is read in other pieces may differ in its last bits.
   */
  readonly reuse?: boolean
  /** Told before each batch how many tokens of its prompts were found in the caches. */
  readonly reused?: (tokens: number) => void
}

export interface ScoreOptions extends RunOptions {
  /** Places whose logits are returned too. */
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
   * How likely the model finds each case.
   * @throws like `generate`; usage `run.sequence` for a case of one token, `run.place` for a place that a case does not have
   */
  score(cases: readonly TokenCase[], options?: ScoreOptions): Promise<Score[]>
}
