/** Embeds texts with the model's tokenizer, following the settings files of its folder and the caller's options. */
import { usageError } from '../../errors.js'
import type { Tokenizer } from '../../text/tokenizer.js'
import { expectOptions, type NamesOf } from '../parts/known_options.js'
import type { TokenCase } from '../parts/token_cases.js'
import { type EmbedOptions, type Encoder, embedNames } from './encoder_pipeline.js'
import type { SentenceSettings } from './sentence_settings.js'

export interface EmbedTextOptions extends EmbedOptions {
  /**
   * True if texts with too many tokens are truncated to `max_seq_length` of `sentence_bert_config.json`, or to the model's positions. If
   * undefined, they are truncated if that file has a limit, and refused otherwise.
   */
  readonly truncate?: boolean | undefined
  /** False ignores the files of sentence-transformers. */
  readonly settings?: boolean | undefined
}

const names: NamesOf<EmbedTextOptions> = { ...embedNames, truncate: true, settings: true }

/** Embeds one text or several. Options override the files of the model's folder; the default pooling is the mean. */
export interface EmbedTexts {
  (input: string | TokenCase, options?: EmbedTextOptions): Promise<Float32Array>
  (inputs: readonly (string | TokenCase)[], options?: EmbedTextOptions): Promise<Float32Array[]>
}

/** Tokenizer and settings of a folder, read on first use. */
interface Folder {
  tokenizer(): Promise<Tokenizer>
  settings(): Promise<SentenceSettings>
}

/** Makes a function that embeds texts. It throws usage `embed.*`, `run.*`, `tokenizer.*`, and what the encoder throws. */
export function textEmbedder(encoder: Encoder, folder: Folder): EmbedTexts {
  async function embed(given: string | TokenCase | readonly (string | TokenCase)[], options: EmbedTextOptions = {}) {
    expectOptions('embed', names, options)
    const { truncate, settings, ...encoding } = options
    const single = !Array.isArray(given)
    const inputs = (single ? [given] : given) as readonly (string | TokenCase)[]
    const own: SentenceSettings = settings === false ? { lowerCase: false, prompt: '' } : await folder.settings()
    const { pooling = own.pooling, normalize = own.normalize } = encoding
    const tokenizer = inputs.some((input) => typeof input === 'string') ? await folder.tokenizer() : undefined
    const most = Math.min(own.most ?? encoder.config.positions, encoder.config.positions)
    const cuts = truncate ?? own.most !== undefined
    const cases = inputs.map((input, at) => {
      if (typeof input !== 'string' || tokenizer === undefined) return input as TokenCase
      const text = own.prompt + input
      const { ids } = tokenizer.encode(own.lowerCase ? text.toLowerCase() : text, {
        truncate: cuts ? { how: 'longest_first', most } : undefined,
      })
      if (ids.length > most) {
        throw usageError('run.sequence', `text ${at} has ${ids.length} tokens, at most ${most} are read`, {
          hint: 'split the text into shorter pieces, or give truncate: true, or --truncate longest_first',
        })
      }
      return { inputIds: ids }
    })
    const rows = await encoder.embed(cases, { ...encoding, pooling, normalize })
    return single ? rows[0] : rows
  }
  return embed as EmbedTexts
}
