/**
 * A conversation with a model: messages that have been said, and answers that come as text. Each turn renders the whole conversation by
 * the model's template; a generator that keeps what it has read reads the new message alone.
 */
import { usageError } from '../errors.js'
import type { ChatMessage, RenderOptions } from './chat_template.js'
import { type PromptReader, promptIds } from './prompts.js'
import { shownText } from './shown_text.js'

/** What continues ids. */
export interface IdGenerator {
  /** Ids that follow a prompt, as they are chosen, without an end id. Leaving the loop early ends the work. */
  generate(ids: readonly number[], signal?: AbortSignal): AsyncIterable<readonly number[]>
}

export interface ChatOptions {
  readonly reader: PromptReader
  readonly generator: IdGenerator
  /** What is said before the conversation, as the template's `system`. */
  readonly system?: string | undefined
  /** Texts that end an answer. */
  readonly stop?: readonly string[]
  /** Variables of the template. */
  readonly variables?: RenderOptions['variables'] | undefined
}

/** A message of a session: a text. */
export interface Spoken extends ChatMessage {
  readonly content: string
}

export interface ChatSession {
  /** What has been said, the system's message first. */
  readonly messages: readonly Spoken[]
  /**
   * Says something, and gives the answer as it comes. An answer that is left early is kept as far as it was shown; a turn that fails is
   * as if it had never been.
   * @throws usage `chat.*`, `prompt.*`; what the generator throws; the signal's reason when it aborts
   */
  say(content: string, signal?: AbortSignal): AsyncGenerator<string, void>
  /** Forgets all that was said but the system's message. */
  reset(): void
}

/** @throws usage `prompt.template`, `prompt.tokenizer` for a model that cannot be talked to, `generate.stop` */
export function openChat({ reader, generator, system, stop = [], variables = {} }: ChatOptions): ChatSession {
  const { tokenizer } = reader
  const first: readonly Spoken[] = system === undefined ? [] : [{ role: 'system', content: system }]
  let messages = [...first]
  let talking = false
  // What is missing is said before anything is typed.
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
      const said = [...messages, { role: 'user', content }]
      try {
        const prompt = promptIds({ messages: said, variables }, reader)
        const shown = shownText(tokenizer, stop)
        let answer = ''
        const add = (text: string): string => {
          answer += text
          // The turn counts from its first words: whoever leaves now has heard them.
          messages = [...said, { role: 'assistant', content: answer }]
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
