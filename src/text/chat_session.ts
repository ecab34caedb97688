/**
 * A conversation with a model: past messages, and answers that are streamed as text. Each turn renders the whole conversation by the model's
 * template. A generator with a prompt cache reads the new message alone.
 */
import { usageError } from '../errors.js'
import type { ChatMessage, RenderOptions } from './chat_template.js'
import { type PromptReader, promptIds } from './prompts.js'
import { shownText } from './shown_text.js'

/** A generator that continues token ids. */
export interface IdGenerator {
  /** Token ids that follow a prompt, as they are chosen, without an end id. Leaving the loop early ends the work. */
  generate(ids: readonly number[], signal?: AbortSignal): AsyncIterable<readonly number[]>
}

export interface ChatOptions {
  readonly reader: PromptReader
  readonly generator: IdGenerator
  /** Message before the conversation, passed to the template as `system`. */
  readonly system?: string | undefined
  /** Stop strings of an answer. */
  readonly stop?: readonly string[]
  /** Variables of the template. */
  readonly variables?: RenderOptions['variables'] | undefined
}

/** A message of a session, with a string as content. */
export interface Spoken extends ChatMessage {
  readonly content: string
}

export interface ChatSession {
  /** Messages so far, the system's message first. */
  readonly messages: readonly Spoken[]
  /**
   * Sends a message, and streams the answer. An answer that is left early is kept up to the text that was shown. A turn that fails leaves the
   * conversation unchanged.
   * @throws usage `chat.*`, `prompt.*`; what the generator throws; the signal's reason when it aborts
   */
  say(content: string, signal?: AbortSignal): AsyncGenerator<string, void>
  /** Removes all messages but the system's. */
  reset(): void
}

/** @throws usage `prompt.template`, `prompt.tokenizer` for a model without a chat template or a tokenizer, `generate.stop` */
export function openChat({ reader, generator, system, stop = [], variables = {} }: ChatOptions): ChatSession {
  const { tokenizer } = reader
  const first: readonly Spoken[] = system === undefined ? [] : [{ role: 'system', content: system }]
  let messages = [...first]
  let talking = false
  // Missing parts are reported before the first message.
  if (tokenizer === undefined || reader.template === undefined) promptIds({ messages: [{ role: 'user', content: '.' }] }, reader)
  shownText({ decode: () => '' }, stop)
  return {
    get messages() {
      return messages
    },
    async *say(content, signal) {
      if (tokenizer === undefined) throw new Error('internal: a conversation without a tokenizer')
      if (talking) throw usageError('chat.turn', 'an answer is still coming, expected it to end before the next message')
      talking = true
      const turns = [...messages, { role: 'user', content }]
      try {
        const prompt = promptIds({ messages: turns, variables }, reader)
        const shown = shownText(tokenizer, stop)
        let answer = ''
        const add = (text: string): string => {
          answer += text
          // The turn counts from its first text: a caller that leaves now has seen it.
          messages = [...turns, { role: 'assistant', content: answer }]
          return text
        }
        const before = messages
        try {
          for await (const ids of generator.generate(prompt, signal)) {
            const text = add(shown.push(ids))
            if (text !== '') yield text
            if (shown.stop !== undefined) break
          }
          const rest = add(shown.finish())
          if (rest !== '') yield rest
        } catch (error) {
          messages = before
          throw error
        }
      } finally {
        talking = false
      }
    },
    reset() {
      messages = [...first]
    },
  }
}
