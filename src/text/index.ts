/**
 * Text of models: the exports of `heddle/text`. Nothing here needs a device.
 *
 * @module heddle/text
 */
export { type ChatOptions, type ChatSession, type IdGenerator, openChat, type Spoken } from './chat_session.js'
export { type ChatMessage, type ChatTemplate, chatTemplate, type RenderOptions, type TextPart } from './chat_template.js'
export { loadChatTemplate } from './load_template.js'
export { type Prompt, type PromptReader, promptIds } from './prompts.js'
export { type ShownText, shownText } from './shown_text.js'
export { type DecodeOptions, type EncodedWords, type EncodeOptions, loadTokenizer, type Tokenizer } from './tokenizer.js'
export type { Encoded, Truncation } from './truncation.js'
