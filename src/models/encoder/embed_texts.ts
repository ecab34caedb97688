/** Texts as embeddings: by the model's tokenizer, as the files of its folder say and as a caller asks for. */
import { usageError } from '../../errors.js'
import type { Tokenizer } from '../../text/tokenizer.js'
import { expectOptions, type NamesOf } from '../parts/known_options.js'
import type { TokenCase } from '../parts/token_cases.js'
import { type EmbedOptions, type Encoder, embedNames } from './encoder_pipeline.js'
import type { SentenceSettings } from './sentence_settings.js'

export interface EmbedTextOptions extends EmbedOptions {
  /**
   * Whether texts with too many tokens are cut: to `max_seq_length` of `sentence_bert_config.json`, or to the positions of the model. Where
   * undefined, they are cut where that file says so, and refused otherwise.
   */
  readonly truncate?: boolean | undefined
  /** False leaves the files of sentence-transformers out. */
  readonly settings?: boolean | undefined
}

const names: NamesOf<EmbedTextOptions> = { ...embedNames, truncate: true, settings: true }

/** A row of numbers for a text, or for each of several. Options come before the files of the model's folder; the mean where neither says. */
export interface EmbedTexts {
  (input: string | TokenCase, options?: EmbedTextOptions): Promise<Float32Array>
  (inputs: readonly (string | TokenCase)[], options?: EmbedTextOptions): Promise<Float32Array[]>
}

/** What a folder has to embed texts with, read when it is first asked for. */
interface Folder {
  tokenizer(): Promise<Tokenizer>
  settings(): Promise<SentenceSettings>
}

/** @throws of its result: usage `embed.*`, `run.*`, `tokenizer.*`, and what the encoder throws */
export function textEmbedder(encoder: Encoder, folder: Folder): EmbedTexts {
  async function embed(given: string | TokenCase | readonly (string | TokenCase)[], options: EmbedTextOptions = {}) {
    expectOptions('embed', names, options)
    const { truncate, settings, ...asked } = options
    const single = !Array.isArray(given)
    const inputs = (single ? [given] : given) as readonly (string | TokenCase)[]
    const own: SentenceSettings = settings === false ? { lowerCase: false, prompt: '' } : await folder.settings()
    const { pooling = own.pooling, normalize = own.normalize } = asked
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
    const rows = await encoder.embed(cases, { ...asked, pooling, normalize })
    return single ? rows[0] : rows
  }
  return embed as EmbedTexts
}
