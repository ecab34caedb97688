/**
 * A model folder as what a generator is made of: the program that reads texts, the programs of one step, and what a host has to know of them.
 * An export writes it as tables. Names of states and dimensions are those of the programs in specs/programs; here they get their meaning.
 */
import type { Program } from '../../ir/program.js'
import type { Int8Tensor, Weight } from '../../runtime/weight.js'
import type { TensorNames } from './weight_names.js'

/** Sizes by what they count: those of a generation, and those of a pass over prompts. */
export type Quantity =
  | 'prompts'
  | 'width'
  | 'rows'
  | 'places'
  | 'steps'
  | 'source'
  | 'ends'
  | 'pass_tokens'
  | 'pass_sequences'
  | 'pass_longest'

/** Inputs of what reads texts. */
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

/** Ways of choosing words, each a program of its own. */
export type Way = 'greedy' | 'sample' | 'sample_narrowed' | 'sample_top' | 'beams' | 'beams_diverse' | 'beams_hf'

/** Attributes that a generation says, and not the program. */
export type Attribute = 'max_steps' | 'diversity_rate' | 'length_penalty' | 'early_stopping'

export interface PartOf {
  readonly program: Program
  /** Sizes that are fixed, and what the others count. */
  readonly dims: Readonly<Record<string, number>>
  readonly quantities: Readonly<Record<string, Quantity>>
  /** Tensors of the checkpoint by the program's names of weights. */
  readonly tensors: TensorNames
}

export interface ReaderPart extends PartOf {
  readonly inputs: Readonly<Record<string, InputKind>>
}

export interface StepPart extends PartOf {
  readonly way: Way
  /** The value that the program has for each attribute that a generation says: no other attribute has it. */
  readonly said: Readonly<Partial<Record<Attribute, number>>>
}

export interface GeneratorParts {
  readonly name: 'llama' | 'seq2seq'
  /** True if texts are sources that are read whole, of which words are generated anew; prompts that go on where not. */
  readonly sources: boolean
  readonly vocab: number
  readonly positions: number
  /** The first word of a text, where prompts do not go on. */
  readonly start: number
  readonly pad: number
  readonly ends: readonly number[]
  readonly banned: readonly number[]
  /** The largest top-k of a few words, the most beams, and candidates of a beam by the HF rule. */
  readonly mostTopK: number
  readonly mostBeams: number
  readonly mostCandidates: number
  readonly reader: ReaderPart
  readonly steps: readonly StepPart[]
  readonly weights: Readonly<Record<string, Weight>>
  readonly exact: Readonly<Record<string, Weight>>
  readonly stored: Readonly<Record<string, Int8Tensor>>
}

/** Values of attributes that a generation says, which nothing else has; exact in float32. */
export const saidValues: Readonly<Record<Attribute, number>> = {
  max_steps: 40_961,
  diversity_rate: -0.40625,
  length_penalty: 1.40625,
  early_stopping: 10_007,
}
