/** Text interface of an open encoder-decoder model: generates text from sources with the model's own tokenizer and settings. */
import type { Tokenizer } from '../../text/tokenizer.js'
import { generationNames } from '../decoding/generation_names.js'
import type { GenerationSettings } from '../decoding/generation_settings.js'
import { batchNames } from '../parts/options.js'
import { type OwnOptions, resolveOptions, type WriteText, writerOf } from '../writing/options.js'
import type { GenerateOptions, Seq2seq } from './seq2seq_pipeline.js'

/** Generation options override the model's settings. */
export interface GeneratorTextOptions extends GenerateOptions, OwnOptions {}

const names = { ...generationNames, ...batchNames }

/**
 * Generates text from sources, such as translations and summaries.
 * @param read reads the model's own tokenizer
 */
export const seq2seqTexts = (
  model: Seq2seq,
  settings: GenerationSettings,
  read: () => Promise<Tokenizer>,
): WriteText<GeneratorTextOptions> =>
  writerOf(async (texts, given) => {
    const tokenizer = await read()
    const resolved = resolveOptions<GenerateOptions>({ who: 'text', names, more: { stream: true } }, given, {
      settings,
      vocab: model.config.vocab,
    })
    return { model, tokenizer, prompts: texts.map((text) => tokenizer.encode(text).ids), ...resolved }
  })
