/** What a model is asked, as token ids: ids as they are, a text, or messages by the model's chat template. */
import { HeddleError, usageError } from '../errors.js'
import type { ChatMessage, ChatTemplate, RenderOptions } from './chat_template.js'
import type { Tokenizer } from './tokenizer.js'

export type Prompt =
  | { readonly ids: readonly number[] }
  | { readonly text: string }
  | ({ readonly messages: readonly ChatMessage[] } & RenderOptions)

/** What a model folder has to read prompts with. */
export interface PromptReader {
  readonly tokenizer: Tokenizer | undefined
  /** Why there is no tokenizer, where there is none. */
  readonly withoutTokenizer?: unknown
  readonly template: ChatTemplate | undefined
  /** The token in front of every text, where the model has one. */
  readonly bos: number | undefined
  /** Words of the model: ids are below. */
  readonly vocab: number
}

/**
 * The token ids of a prompt. A text gets the tokenizer's special tokens; where it begins with the model's first token already, it does not
 * get it twice. Messages get what their template writes, and nothing else.
 * @throws usage `prompt.empty`, `prompt.token`, `prompt.tokenizer`, `prompt.template`, why there is no tokenizer, and what rendering and encoding throw
 */
export function promptIds(prompt: Prompt, reader: PromptReader): number[] {
  const ids = idsOf(prompt, reader)
  if (ids.length === 0) throw usageError('prompt.empty', 'the prompt is empty: a model continues one token at least')
  const wrong = ids.findIndex((id) => !Number.isInteger(id) || id < 0 || id >= reader.vocab)
  if (wrong < 0) return ids
  throw usageError('prompt.token', `token id ${ids[wrong]} at position ${wrong} of the prompt is not in [0, ${reader.vocab})`, {
    hint: 'the tokenizer may belong to another model',
  })
}

function idsOf(prompt: Prompt, { tokenizer, template, bos, withoutTokenizer }: PromptReader): number[] {
  if ('ids' in prompt) return [...prompt.ids]
  if (tokenizer === undefined) {
    if (withoutTokenizer instanceof HeddleError) throw withoutTokenizer
    throw usageError('prompt.tokenizer', 'the model has no tokenizer, and the prompt is a text', { hint: 'give token ids' })
  }
  if ('text' in prompt) {
    const { ids } = tokenizer.encode(prompt.text)
    return bos !== undefined && ids[0] === bos && ids[1] === bos ? ids.slice(1) : [...ids]
  }
  if (template === undefined) {
    throw usageError('prompt.template', 'the model has no chat template, and the prompt is a list of messages', {
      hint: 'give a text, or put a chat_template.jinja into the model folder',
    })
  }
  // The template wrote the special tokens: the tokenizer must not add them again.
  return [...tokenizer.encode(template.render(prompt.messages, prompt), { special: false }).ids]
}
