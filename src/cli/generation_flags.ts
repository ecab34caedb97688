/** Options of generation on the command line, and what they ask a model for. */
import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { usageError } from '../errors.js'
import type { GenerationOptions } from '../models/decoding/generation_options.js'

/** Options of generation as the command line has them. */
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

/** A number as it is written; what it may be is checked where it is used. */
function number(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || Number.isNaN(value)) throw new InvalidArgumentError('Expected a number.')
  return value
}

/** Its name begins as those of options that turn something off, and it is none. */
function ngramOption(): Option {
  const option = new Option('--no-repeat-ngram-size <count>', 'so many words that follow each other are not repeated')
  option.negate = false
  return option.argParser(number)
}

const stopping = { false: false, true: true, never: 'never' } as const

/** A command with the options of generation. */
export const generationCommand = (name: string) =>
  new Command(name)
    .option('--beams, --beam <count>', 'hypotheses followed side by side', number)
    .option('--return <count>', 'hypotheses returned of each case', number)
    .option('--length-penalty <x>', 'finished beams compare by sum / length^x, as Hugging Face has it', number)
    .addOption(
      new Option('--early-stopping <when>', 'when finished beams are enough')
        .choices(['false', 'true', 'never'] as const)
        .argParser((text: string): boolean | 'never' => {
          if (text === 'false' || text === 'true' || text === 'never') return stopping[text]
          throw new InvalidArgumentError('Allowed choices are false, true, never.')
        }),
    )
    .option('--diversity-rate <x>', 'added to a word for each better one of its beam; below 0 beams differ more', number)
    .option('--top-k <count>', 'draw from the likeliest words', number)
    .option('--top-p <mass>', 'draw from the likeliest words with this probability together', number)
    .option('--min-p <share>', 'draw from words at least so probable, relative to the likeliest', number)
    .option('--temperature <x>', 'divides logits before a draw; 0: draw nothing', number)
    .option('--repetition-penalty <x>', 'makes words that were chosen before less likely', number)
    .addOption(ngramOption())
    .option('--seed <integer>', 'of the draws', number)
    .option('--logprobs', 'print the log-probability of each token, by the logits of the model alone')
    .option('--max-new-tokens <count>', 'tokens generated at most', number)
    .option('--min-new-tokens <count>', 'tokens generated before an end id may be', number)
    .option('--forced-bos-token-id <id>', 'the first token of every text, such as the language to translate to', number)
    .option('--forced-eos-token-id <id>', 'the last token of a text that --max-new-tokens cuts off', number)

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
  throw usageError('run.option', `--${flag} is of models that generate text, and this one does not`)
}

/** Options of the pipeline. */
export function generationOf(flags: GenerationFlags): GenerationOptions {
  const { beam, return: returned, ...rest } = flags
  const options = { ...rest, beams: beam, returned }
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
}
