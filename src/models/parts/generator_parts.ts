/**
 * Parts of a generator made from a model folder: the program that reads texts, the programs of one step, and the facts a host needs about them.
 * An export writes them as tables. States and dimensions are named as in specs/programs; this file gives the names their meaning.
 */
import type { Program } from '../../ir/program.js'
import type { Int8Tensor, Weight } from '../../runtime/weight.js'
import type { TensorNames } from './weight_names.js'

/** Quantities that a size may count: those of a generation, and those of a pass over prompts. */
export type Quantity =
  | 'prompts'
  | 'width'
  | 'rows'
  | 'places'
  | 'steps'
  | 'source'
  | 'ends'
  | 'forced_ends'
  | 'pass_tokens'
  | 'pass_sequences'
  | 'pass_longest'

/** Inputs of the program that reads texts. */
export type InputKind =
  | 'sources'
  | 'source_lengths'
  | 'ids'
  | 'places'
  | 'sequences'
  | 'positions'
  | 'starts'
  | 'lengths'
  | 'first'
  | 'slots'
  | 'writers'

/** Methods of choosing tokens; each has its own program. */
export type DecodingMethod = 'greedy' | 'sample' | 'sample_narrowed' | 'sample_top' | 'beams' | 'beams_diverse' | 'beams_hf'

/** Attributes that a generation sets, not the program. */
export type Attribute = 'max_steps' | 'diversity_rate' | 'length_penalty' | 'early_stopping' | 'no_repeat_ngram_size'

export interface PartOf {
  readonly program: Program
  /** Fixed sizes by dimension. */
  readonly dims: Readonly<Record<string, number>>
  /** Quantities that the other dimensions count. */
  readonly quantities: Readonly<Record<string, Quantity>>
  /** Checkpoint tensors by the program's weight names. */
  readonly tensors: TensorNames
}

export interface ReaderPart extends PartOf {
  readonly inputs: Readonly<Record<string, InputKind>>
}

export interface StepPart extends PartOf {
  readonly method: DecodingMethod
  /** Placeholder value in the program of each attribute that a generation sets. No other attribute has this value. */
  readonly said: Readonly<Partial<Record<Attribute, number>>>
}

export interface GeneratorParts {
  readonly name: 'llama' | 'seq2seq'
  /** True if texts are sources that an encoder reads whole and new text is generated from; false if prompts are continued. */
  readonly sources: boolean
  readonly vocab: number
  readonly positions: number
  /** First token of a text if prompts are not continued. */
  readonly start: number
  readonly pad: number
  readonly ends: readonly number[]
  readonly banned: readonly number[]
  /** Largest top-k of the kernels for few candidates. */
  readonly mostTopK: number
  /** Maximum number of beams. */
  readonly mostBeams: number
  /** Maximum number of candidates per beam by the HF rule. */
  readonly mostCandidates: number
  /** True if its programs keep the log-probability of each token. */
  readonly logprobs: boolean
  readonly reader: ReaderPart
  readonly steps: readonly StepPart[]
  /** Weights that texts beyond some positions use instead of others, by the names of those; absent if all texts use the same. */
  readonly long?: { readonly after: number; readonly tensors: Readonly<Record<string, string>> }
  readonly weights: Readonly<Record<string, Weight>>
  readonly exact: Readonly<Record<string, Weight>>
  readonly stored: Readonly<Record<string, Int8Tensor>>
}

/** Placeholder values of the attributes that a generation sets. No other attribute has them; they are exact in float32. */
export const saidValues: Readonly<Record<Attribute, number>> = {
  max_steps: 40_961,
  diversity_rate: -0.40625,
  length_penalty: 1.40625,
  early_stopping: 10_007,
  no_repeat_ngram_size: 10_037,
}
