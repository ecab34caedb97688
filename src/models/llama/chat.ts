/**
 * Text interface of an open LLaMA-like model, with its own tokenizer, template and settings: continues prompts, answers conversations, and
 * opens sessions that store the conversation.
 */
import { usageError } from '../../errors.js'
import { type ChatSession, openChat } from '../../text/chat_session.js'
import type { ChatMessage, RenderOptions } from '../../text/chat_template.js'
import { promptIds } from '../../text/prompts.js'
import type { Tokenizer } from '../../text/tokenizer.js'
import type { NamesOf } from '../parts/known_options.js'
import { type OwnOptions, resolveOptions, theText, type WriteText, writerOf } from '../writing/options.js'
import { streamedText, type TextStream, type WrittenText } from '../writing/written.js'
import { generateNames, type Llama, type LlamaGenerateOptions } from './llama_types.js'
import type { LlamaText } from './open_files.js'

/** Default capacity of a conversation: caches for all positions of long models would not fit in memory with their weights. */
const usualCapacity = 4096
/** Default maximum number of tokens of an answer. */
const usualAnswer = 512

/** Generation options override the model's settings. */
export interface LlamaTextOptions extends LlamaGenerateOptions, OwnOptions {}

export interface LlamaChatOptions extends LlamaTextOptions {
  /** Variables of the template, such as `{ enable_thinking: false }`. */
  readonly templateVariables?: RenderOptions['variables'] | undefined
  /** Tools that the model may call, in the form its template reads: JSON schemas of functions. */
  readonly tools?: readonly object[] | undefined
}

/** Options of a session. Beams are not allowed, because they return whole texts. */
export interface LlamaSessionOptions extends LlamaChatOptions {
  /** The template's `system` message. */
  readonly system?: string | undefined
}

/** Answers a conversation. The last message is the one that is answered. */
export interface AnswerMessages {
  (messages: readonly ChatMessage[], options: LlamaChatOptions & { readonly stream: true }): TextStream
  (messages: readonly ChatMessage[], options?: LlamaChatOptions & { readonly stream?: false }): Promise<WrittenText>
}

const chatNames: NamesOf<Pick<LlamaChatOptions, 'templateVariables' | 'tools'>> = { templateVariables: true, tools: true }

/** Variables for rendering the template. */
const variablesOf = ({ templateVariables, tools }: LlamaChatOptions): NonNullable<RenderOptions['variables']> => ({
  ...templateVariables,
  ...(tools === undefined ? {} : { tools }),
})

/** Continues texts. @param read reads the model's own tokenizer and settings */
export const llamaTexts = (model: Llama, read: () => Promise<LlamaText>): WriteText<LlamaTextOptions> =>
  writerOf(async (texts, given) => {
    const reader = await read()
    const resolved = resolveOptions<LlamaGenerateOptions>(
      { who: 'text', names: generateNames, more: { stream: true } },
      given,
      reader,
    )
    const prompts = texts.map((text) => promptIds({ text }, reader))
    return { model, tokenizer: tokenizerOf(reader), prompts, ...resolved }
  })

/**
 * Answers conversations. If one shares a prefix with the previous conversation, only the rest is read.
 * @param read reads the model's own tokenizer, template and settings
 */
export function llamaAnswers(model: Llama, read: () => Promise<LlamaText>): AnswerMessages {
  function answer(messages: readonly ChatMessage[], given: LlamaChatOptions & { readonly stream?: boolean } = {}) {
    const start = async () => {
      const reader = await read()
      const more = { ...chatNames, stream: true } as const
      const resolved = resolveOptions<LlamaGenerateOptions>({ who: 'chat', names: generateNames, more }, given, reader)
      const prompt = promptIds({ messages, variables: variablesOf(given) }, reader)
      const options = { reuse: true, ...withRoom(model, resolved.options, prompt.length) }
      return { model, tokenizer: tokenizerOf(reader), prompts: [prompt], ...resolved, options }
    }
    return given.stream === true ? streamedText(start) : theText(start)
  }
  return answer as AnswerMessages
}

/** Options of an answer, with defaults for its length and for a cache capacity that the next answer can reuse. */
function withRoom({ config: { positions } }: Llama, resolved: LlamaGenerateOptions, length: number): LlamaGenerateOptions {
  const room = resolved.capacity ?? Math.min(positions, usualCapacity)
  const usual = Math.min(usualAnswer, Math.ceil(room / 2), Math.max(positions - length, 1))
  const maxNewTokens = resolved.maxNewTokens ?? usual
  return { ...resolved, maxNewTokens, capacity: resolved.capacity ?? Math.min(positions, Math.max(room, length + maxNewTokens)) }
}

/** The tokenizer of a reader that has encoded texts. */
function tokenizerOf({ tokenizer }: LlamaText): Tokenizer {
  if (tokenizer === undefined) throw new Error('internal: texts became ids without a tokenizer')
  return tokenizer
}

/**
 * Begins a conversation that stores its messages. Each turn reads only the new message.
 * @param text the model's own tokenizer, template and settings
 * @throws usage `run.option` for beams, which return whole texts; `prompt.template`, `prompt.tokenizer` for a model without chat support
 */
export function llamaSession(model: Llama, text: LlamaText, given: LlamaSessionOptions = {}): ChatSession {
  const more = { ...chatNames, system: true } as const
  const { options, stop } = resolveOptions<LlamaGenerateOptions>({ who: 'session', names: generateNames, more }, given, text)
  if (options.beams !== undefined && options.beams > 1) {
    throw usageError('run.option', 'beams return whole texts, but a session streams its answers', {
      hint: "omit beams; settings: false, or --no-settings, ignores beams in the model's own settings",
    })
  }
  const capacity = options.capacity ?? Math.min(model.config.positions, usualCapacity)
  const maxNewTokens = options.maxNewTokens ?? Math.min(usualAnswer, Math.ceil(capacity / 2))
  return openChat({
    reader: text,
    generator: {
      async *generate(inputIds, signal) {
        const run = { reuse: true, ...options, maxNewTokens, capacity, ...(signal === undefined ? {} : { signal }) }
        for await (const { ids } of model.stream([{ inputIds }], run)) yield ids
      },
    },
    system: given.system,
    stop,
    variables: variablesOf(given),
  })
}
