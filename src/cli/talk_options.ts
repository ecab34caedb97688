/** Options for continuing texts and for conversations. */
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { z } from 'zod'
import { positive } from './options.js'

/** Options for continuing texts. */
export interface TalkOptions {
  /** Texts that end a continuation. */
  readonly stop?: readonly string[] | undefined
  /** False leaves the model's own settings out. */
  readonly settings?: boolean | undefined
  /** True if results begin with their prompts. */
  readonly withPrompt?: boolean | undefined
  /** System message of a conversation. */
  readonly system?: string | undefined
  /** Variables of the chat template. */
  readonly templateVars?: Readonly<Record<string, unknown>> | undefined
  /** True to answer lines of the standard input one by one. */
  readonly chat?: boolean | undefined
  /** Capacity, in tokens, of a conversation's caches and of others. */
  readonly capacity?: number | undefined
}

/** Options below, as parsed by Commander. Declared here because the types that it infers are too long for declaration files. */
export interface TalkFlags {
  readonly stop?: string[] | undefined
  readonly settings: boolean
  readonly withPrompt?: true | undefined
  readonly chat?: true | undefined
  readonly system?: string | undefined
  readonly templateVars?: Record<string, unknown> | undefined
  readonly capacity?: number | undefined
}

/** Parses a JSON object. */
function jsonObject(text: string): Record<string, unknown> {
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(text))
  } catch {
    throw new InvalidArgumentError('Expected a JSON object.')
  }
}

/** Adds these options to a command. */
export function talkOptions<A extends unknown[], O extends Record<string, unknown>>(
  command: Command<A, O>,
): Command<A, O & TalkFlags> {
  const stop = (text: string, before: string[] = []): string[] => [...before, text]
  command
    .option('--stop <text>', 'end a text at this string; may be repeated', stop)
    .option('--no-settings', "ignore the model's generation_config.json, or its sentence-transformers files")
    .option('--with-prompt', 'include prompts in results')
    .option('--chat', 'answer lines of the standard input, one by one')
    .option('--system <text>', 'system message of a conversation')
    .option('--template-vars <json>', 'variables of the chat template, such as {"enable_thinking":false}', jsonObject)
    .option(
      '--capacity <tokens>',
      'cache capacity in tokens for a conversation, or for every text with --invariant; default: the positions of the model, at most 4096',
      positive,
    )
  return command as unknown as Command<A, O & TalkFlags>
}
