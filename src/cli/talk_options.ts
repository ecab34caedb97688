/** Options of texts that are continued and of conversations, and what they ask for together with a model's own settings. */
import type { Command } from '@commander-js/extra-typings'
import { HeddleError, usageError } from '../errors.js'
import { expectRanges, type GenerationOptions } from '../models/decoding/generation_options.js'
import type { LlamaText } from '../models/llama/open_files.js'
import { flagNames, type GenerationFlags, generationOf } from './generate.js'
import { positive } from './options.js'

/** Options of texts that are continued. */
export interface TalkOptions {
  /** Texts that end a continuation. */
  readonly stop?: readonly string[] | undefined
  /** False leaves the model's own settings out. */
  readonly settings?: boolean | undefined
  /** Whether results begin with their prompts. */
  readonly withPrompt?: boolean | undefined
  /** What is said before a conversation. */
  readonly system?: string | undefined
  /** Whether lines of the standard input are answered one after the other. */
  readonly chat?: boolean | undefined
  /** Places of a conversation's caches, and of others. */
  readonly capacity?: number | undefined
}

/** What Commander makes of the options below. Said, since types that it infers of so many are too long for declarations. */
export interface TalkFlags {
  readonly stop?: string[] | undefined
  readonly settings: boolean
  readonly withPrompt?: true | undefined
  readonly chat?: true | undefined
  readonly system?: string | undefined
  readonly capacity?: number | undefined
}

/** A command with these options. */
export function talkOptions<A extends unknown[], O extends Record<string, unknown>>(
  command: Command<A, O>,
): Command<A, O & TalkFlags> {
  const stop = (text: string, before: string[] = []): string[] => [...before, text]
  command
    .option('--stop <text>', 'end a text where this comes; may be given several times', stop)
    .option('--no-settings', "leave the model's generation_config.json out")
    .option('--with-prompt', 'begin results with their prompts')
    .option('--chat', 'answer lines of the standard input, one after the other')
    .option('--system <text>', 'what is said before a conversation')
    .option(
      '--capacity <tokens>',
      'tokens that a conversation, or every text of --invariant, has room for; default: the positions of the model, at most 4096',
      positive,
    )
  return command as unknown as Command<A, O & TalkFlags>
}

/**
 * What options of a run, and the model's own settings where they are wanted, ask for together.
 * @throws usage `generate.<option>` for a number of the settings that is out of range and that no option takes the place of
 */
export function settingsOf(
  flags: GenerationFlags & Pick<TalkOptions, 'stop' | 'settings'>,
  { settings, vocab }: Pick<LlamaText, 'settings' | 'vocab'>,
  log: (text: string) => void,
): { readonly options: GenerationOptions; readonly stop: readonly string[] } {
  const given = generationOf(Object.fromEntries(flagNames.map((name) => [name, flags[name]])))
  if (flags.settings === false) return { options: given, stop: flags.stop ?? [] }
  for (const line of settings.ignored) log(`${line}\n`)
  const { topK } = settings.options
  // HF's default, and what a file says, may be more words than a small model has.
  const stated = topK === undefined ? settings.options : { ...settings.options, topK: Math.min(topK, vocab) }
  const without = (names: readonly (keyof GenerationOptions)[]): GenerationOptions => {
    const isOf = ([name]: readonly [string, unknown]): boolean => names.some((each) => each === name)
    for (const [name, value] of Object.entries(stated).filter(isOf)) {
      if (given[name as keyof GenerationOptions] === undefined)
        log(`the model's own ${name} ${JSON.stringify(value)} does not go with what is asked for, and is left out\n`)
    }
    return Object.fromEntries(Object.entries(stated).filter((each) => !isOf(each)))
  }
  const has = (names: readonly (keyof GenerationOptions)[]): boolean => names.some((name) => given[name] !== undefined)
  // Whoever asks for beams asks for no draws, and the other way round.
  const own = has(ofBeams) ? without([...ofDraws, 'repetitionPenalty', 'minNewTokens']) : has(ofDraws) ? without(ofBeams) : stated
  expectOwn(Object.fromEntries(Object.entries(own).filter(([name]) => !Object.hasOwn(given, name))), settings.file)
  return { options: { ...own, ...given }, stop: [...settings.stop, ...(flags.stop ?? [])] }
}

/** @throws usage `generate.<option>` naming the file that states a number out of range */
function expectOwn(options: GenerationOptions, file: string): void {
  try {
    expectRanges(options)
  } catch (error) {
    if (!(error instanceof HeddleError)) throw error
    throw usageError(error.code, `${file}: ${error.message}`, {
      hint: 'give the option, which comes before the file, or leave the file out with --no-settings',
    })
  }
}

const ofBeams = ['beams', 'returned', 'rule', 'lengthPenalty', 'earlyStopping'] as const
const ofDraws = ['temperature', 'topK', 'topP', 'minP', 'seed'] as const
