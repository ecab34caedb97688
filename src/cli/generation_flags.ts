/** Command-line options of generation, and their conversion to options of a model. */
import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { usageError } from '../errors.js'
import type { GenerationOptions } from '../models/decoding/generation_options.js'

/** Generation options of the command line. */
export interface GenerationFlags {
  readonly beam?: number | undefined
  readonly return?: number | undefined
  readonly lengthPenalty?: number | undefined
  readonly earlyStopping?: boolean | 'never' | undefined
  readonly diversityRate?: number | undefined
  readonly topK?: number | undefined
  readonly topP?: number | undefined
  readonly minP?: number | undefined
  readonly temperature?: number | undefined
  readonly repetitionPenalty?: number | undefined
  readonly noRepeatNgramSize?: number | undefined
  readonly seed?: number | undefined
  readonly logprobs?: boolean | undefined
  readonly maxNewTokens?: number | undefined
  readonly minNewTokens?: number | undefined
  readonly forcedBosTokenId?: number | undefined
  readonly forcedEosTokenId?: number | undefined
}

/** Parses a number. Its range is checked at its use. */
function number(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || Number.isNaN(value)) throw new InvalidArgumentError('Expected a number.')
  return value
}

/** Option whose name begins with `no-` but does not negate another option. */
function ngramOption(): Option {
  const option = new Option('--no-repeat-ngram-size <count>', 'never repeat a sequence of this many tokens')
  option.negate = false
  return option.argParser(number)
}

const stopping = { false: false, true: true, never: 'never' } as const

/** Command with the options of generation. */
export const generationCommand = (name: string) =>
  new Command(name)
    .option('--beams, --beam <count>', 'hypotheses per case, for beam search', number)
    .option('--return <count>', 'hypotheses returned per case', number)
    .option('--length-penalty <x>', 'finished beams are ranked by sum / length^x, as in Hugging Face', number)
    .addOption(
      new Option('--early-stopping <when>', 'when to stop beam search')
        .choices(['false', 'true', 'never'] as const)
        .argParser((text: string): boolean | 'never' => {
          if (text === 'false' || text === 'true' || text === 'never') return stopping[text]
          throw new InvalidArgumentError('Allowed choices are false, true, never.')
        }),
    )
    .option('--diversity-rate <x>', 'added to a token for each better one of its beam; below 0 beams differ more', number)
    .option('--top-k <count>', 'sample from this many of the most likely tokens', number)
    .option('--top-p <mass>', 'sample from the most likely tokens with this total probability', number)
    .option('--min-p <share>', 'sample from tokens at least this probable, relative to the most likely one', number)
    .option('--temperature <x>', 'divides logits before sampling; 0: no sampling', number)
    .option('--repetition-penalty <x>', 'makes earlier tokens less likely', number)
    .addOption(ngramOption())
    .option('--seed <integer>', 'seed of the random numbers', number)
    .option('--logprobs', 'print the log-probability of each token, from the unmodified logits')
    .option('--max-new-tokens <count>', 'largest number of generated tokens', number)
    .option('--min-new-tokens <count>', 'smallest number of generated tokens before an end id', number)
    .option('--forced-bos-token-id <id>', 'first token of every text, such as the target language', number)
    .option('--forced-eos-token-id <id>', 'last token of a text that --max-new-tokens truncates', number)

export const flagNames: readonly (keyof GenerationFlags)[] = [
  'beam',
  'return',
  'lengthPenalty',
  'earlyStopping',
  'diversityRate',
  'topK',
  'topP',
  'minP',
  'temperature',
  'repetitionPenalty',
  'noRepeatNgramSize',
  'seed',
  'logprobs',
  'maxNewTokens',
  'minNewTokens',
  'forcedBosTokenId',
  'forcedEosTokenId',
]

/** @throws usage `run.option` for an option of generation given to a model that generates nothing */
export function expectNoGeneration(options: GenerationFlags): void {
  const given = flagNames.find((name) => options[name] !== undefined)
  if (given === undefined) return
  const flag = given.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  throw usageError('run.option', `--${flag} applies to models that generate text, and this one does not`)
}

/** Options for a pipeline. */
export function generationOf(flags: GenerationFlags): GenerationOptions {
  const { beam, return: returned, ...rest } = flags
  const options = { ...rest, beams: beam, returned }
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
}
