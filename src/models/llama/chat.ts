/** A conversation with an open LLaMA-like model: its own tokenizer, template and settings, and caches that keep what was read. */
import { usageError } from '../../errors.js'
import { type ChatSession, openChat } from '../../text/chat_session.js'
import type { RenderOptions } from '../../text/chat_template.js'
import type { GenerationOptions } from '../decoding/generation_options.js'
import { optionsWithin } from '../decoding/generation_settings.js'
import type { Llama } from './llama_types.js'
import type { LlamaText } from './open_files.js'

/** Room for a conversation where nothing says how much: caches of long models would not fit beside their weights. */
const usualCapacity = 4096
/** Tokens of an answer where nothing says how many. */
const usualAnswer = 512

export interface LlamaChatOptions {
  /** The template's `system` message. */
  readonly system?: string | undefined
  /** Texts that end an answer, besides those of the model's settings. */
  readonly stop?: readonly string[]
  /** Variables of the template, such as `enable_thinking` and `tools`. */
  readonly variables?: RenderOptions['variables'] | undefined
  /** Options of the answers, before the model's settings. No beams. At most 512 tokens each by default. */
  readonly generation?: GenerationOptions
  /** False leaves the model's `generation_config.json` out. */
  readonly settings?: boolean
  /** Tokens that the conversation has room for; the model's positions by default, at most 4096. */
  readonly capacity?: number | undefined
}

/** Other options of a run: reading of prompts, and the report of reused tokens. */
export type ChatRun = Omit<NonNullable<Parameters<Llama['stream']>[1]>, keyof GenerationOptions | 'capacity' | 'reuse'>

/**
 * Begins a conversation. Each turn reads the new message alone.
 * @throws usage `run.option` for beams, which give whole texts; `prompt.template`, `prompt.tokenizer` for a model that cannot be talked to
 */
export function llamaChat(model: Llama, text: LlamaText, options: LlamaChatOptions = {}, run: ChatRun = {}): ChatSession {
  const { system, stop = [], variables, generation = {}, settings = true } = options
  const capacity = options.capacity ?? Math.min(model.config.positions, usualCapacity)
  const asked = { ...(settings ? optionsWithin(text.settings.options, text.vocab) : {}), ...generation }
  if (asked.beams !== undefined && asked.beams > 1) {
    throw usageError('run.option', 'beams give whole texts, and an answer is shown as it comes', {
      hint: "leave beams out; settings: false, or --no-settings, leaves out those of the model's own settings",
    })
  }
  const maxNewTokens = asked.maxNewTokens ?? Math.min(usualAnswer, Math.ceil(capacity / 2))
  return openChat({
    reader: text,
    generator: {
      async *generate(inputIds, signal) {
        const given = {
          ...asked,
          ...{ maxNewTokens, capacity, reuse: true },
          ...run,
          ...(signal === undefined ? {} : { signal }),
        }
        for await (const { ids } of model.stream([{ inputIds }], given)) yield ids
      },
    },
    system,
    stop: [...(settings ? text.settings.stop : []), ...stop],
    variables,
  })
}
