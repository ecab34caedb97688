/** Opens a LLaMA-like model from disk: a folder in HF's format, or a GGUF file, named or alone in its folder. */
import { openModelCheckpoint } from '../../checkpoint/checkpoint.js'
import { ggufPath } from '../../checkpoint/gguf_parts.js'
import { ggufTemplate, ggufTokenizer } from '../../text/gguf_tokenizer.js'
import { loadChatTemplate } from '../../text/load_template.js'
import type { PromptReader } from '../../text/prompts.js'
import { loadTokenizer } from '../../text/tokenizer.js'
import { type GenerationSettings, parseGenerationSettings, readGenerationSettings } from '../decoding/generation_settings.js'
import { type LlamaConfig, readLlamaConfig } from './config.js'
import { type LlamaFiles, openLlamaGguf } from './gguf_model.js'
import { withOwnHead } from './own_head.js'
import { withHeadsInHalves } from './paired_heads.js'
import { embeddingNames } from './tensor_names.js'

/**
 * The configuration and tensors of a model. Only headers are read, except for a tied model that may have its own head.
 * @throws usage `config.*`, `safetensors.*`, `checkpoint.*`, `gguf.*`; the signal's reason when it aborts
 */
export async function openLlamaFiles(path: string, signal?: AbortSignal): Promise<LlamaFiles> {
  const file = await ggufPath(path)
  if (file !== undefined) return openLlamaGguf(file, signal)
  const config = await readLlamaConfig(path)
  const checkpoint = withHeadsInHalves(await openModelCheckpoint(path, embeddingNames, signal), config)
  return { config: await withOwnHead(config, checkpoint, signal), checkpoint }
}

/** Tokenizer, template and settings for the texts of a model. */
export interface LlamaText extends PromptReader {
  readonly settings: GenerationSettings
}

/**
 * The tokenizer, the chat template and the generation settings of a model. A model without a tokenizer takes token ids.
 * @throws usage `chat.template`, `config.*`, `gguf.*` for files that exist but cannot be read
 */
export async function openLlamaText(path: string, { bos, vocab }: Pick<LlamaConfig, 'bos' | 'vocab'>): Promise<LlamaText> {
  const given = { bos, vocab }
  const file = await ggufPath(path)
  if (file !== undefined) {
    const { metadata } = await openLlamaGguf(file)
    const tokenizer = await attempt(() => ggufTokenizer(metadata, file))
    return { ...given, ...tokenizer, template: ggufTemplate(metadata, file), settings: parseGenerationSettings({}, file) }
  }
  const tokenizer = await attempt(() => loadTokenizer(path))
  return { ...given, ...tokenizer, template: await loadChatTemplate(path), settings: await readGenerationSettings(path) }
}

async function attempt<T>(
  load: () => T | Promise<T>,
): Promise<{ readonly tokenizer: T | undefined; readonly withoutTokenizer: unknown }> {
  try {
    return { tokenizer: await load(), withoutTokenizer: undefined }
  } catch (error) {
    return { tokenizer: undefined, withoutTokenizer: error }
  }
}
