/** Prompts as token ids: ids as they are, a text, or messages by the model's chat template. */
import { HeddleError, usageError } from '../errors.js'
import type { ChatMessage, ChatTemplate, RenderOptions } from './chat_template.js'
import type { Tokenizer } from './tokenizer.js'

export type Prompt =
  | { readonly ids: readonly number[] }
  | { readonly text: string }
  | ({ readonly messages: readonly ChatMessage[] } & RenderOptions)

/** Parts of a model that read prompts. */
export interface PromptReader {
  readonly tokenizer: Tokenizer | undefined
  /** Error that explains a missing tokenizer. */
  readonly withoutTokenizer?: unknown
  readonly template: ChatTemplate | undefined
  /** First token of every text, if the model has one. */
  readonly bos: number | undefined
  /** Size of the vocabulary: ids are below it. */
  readonly vocab: number
}

/**
 * Token ids of a prompt. A text gets the tokenizer's special tokens. If it begins with the model's first token already, the token is not added again.
 * Messages get only the tokens that their template writes.
 * @throws usage `prompt.empty`, `prompt.token`, `prompt.tokenizer`, `prompt.template`, the reason for a missing tokenizer, and what rendering and
 * encoding throw
 */
export function promptIds(prompt: Prompt, reader: PromptReader): number[] {
  const ids = idsOf(prompt, reader)
  if (ids.length === 0) throw usageError('prompt.empty', 'the prompt is empty, expected at least one token')
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
  // The template has written the special tokens, so the tokenizer must not add them again.
  return [...tokenizer.encode(template.render(prompt.messages, prompt), { special: false }).ids]
}
