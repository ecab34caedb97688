/** Options of texts that are continued, and of conversations. */
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { z } from 'zod'
import { positive } from './options.js'

/** Options of texts that are continued. */
export interface TalkOptions {
  /** Texts that end a continuation. */
  readonly stop?: readonly string[] | undefined
  /** False leaves the model's own settings out. */
  readonly settings?: boolean | undefined
  /** True if results begin with their prompts. */
  readonly withPrompt?: boolean | undefined
  /** What is said before a conversation. */
  readonly system?: string | undefined
  /** Variables of the chat template. */
  readonly templateVars?: Readonly<Record<string, unknown>> | undefined
  /** True if lines of the standard input are answered one after the other. */
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
  readonly templateVars?: Record<string, unknown> | undefined
  readonly capacity?: number | undefined
}

/** An object as JSON. */
function jsonObject(text: string): Record<string, unknown> {
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(text))
  } catch {
    throw new InvalidArgumentError('Expected a JSON object.')
  }
}

/** A command with these options. */
export function talkOptions<A extends unknown[], O extends Record<string, unknown>>(
  command: Command<A, O>,
): Command<A, O & TalkFlags> {
  const stop = (text: string, before: string[] = []): string[] => [...before, text]
  command
    .option('--stop <text>', 'end a text where this comes; may be given several times', stop)
    .option('--no-settings', "leave the model's generation_config.json out, or files of sentence-transformers")
    .option('--with-prompt', 'begin results with their prompts')
    .option('--chat', 'answer lines of the standard input, one after the other')
    .option('--system <text>', 'what is said before a conversation')
    .option('--template-vars <json>', 'variables of the chat template, such as {"enable_thinking":false}', jsonObject)
    .option(
      '--capacity <tokens>',
      'tokens that a conversation, or every text of --invariant, has room for; default: the positions of the model, at most 4096',
      positive,
    )
  return command as unknown as Command<A, O & TalkFlags>
}
