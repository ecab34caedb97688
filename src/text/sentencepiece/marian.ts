/**
 * Marian's tokenizer (tokenization_marian.py of transformers): `source.spm` splits sources, `vocab.json` has the ids of all pieces, and a source may
 * begin with the requested language, `>>xx<<`. With two vocabularies, `target_vocab.json` has the ids of outputs.
 */
import { join } from 'node:path'
import { z } from 'zod'
import { checkFields } from '../../checkpoint/config_file.js'
import { usageError } from '../../errors.js'
import { readText } from '../../files.js'
import type { TokenLibrary } from '../token_library.js'
import { blank } from './normalise.js'
import { processorOf } from './processor.js'
import { specialTokens } from './special_tokens.js'
import { tokensBy } from './token_rules.js'
import { readPieceModel, type TokenizerFiles } from './tokenizer_files.js'

const vocabulary = z.record(
  z.string(),
  z
    .int()
    .min(0)
    .max(2 ** 31 - 1),
)

/** Tokens of a vocabulary by id, and ids by token. */
async function readVocabulary(
  path: string,
): Promise<{ idOf(token: string): number | undefined; tokenOf(id: number): string | undefined }> {
  let value: unknown
  const text = await readText(path, { code: 'tokenizer.read' })
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw usageError('tokenizer.invalid', `${path} is not JSON`, { cause })
  }
  const ids = new Map(Object.entries(checkFields(vocabulary, value, path)))
  const tokens = new Map([...ids].map(([token, id]) => [id, token]))
  return { idOf: (token) => ids.get(token), tokenOf: (id) => tokens.get(id) }
}

/** Language at the beginning of a source, a token of its own. */
const language = /^>>.*?<</su

/** @throws usage `tokenizer.read`, `tokenizer.invalid`, `config.field` naming the file */
export async function marianTokenizer(dir: string, files: TokenizerFiles): Promise<TokenLibrary> {
  const path = (name: string): string => join(dir, name)
  const source = processorOf(await readPieceModel(path('source.spm')))
  const target = processorOf(await readPieceModel(path('target.spm')))
  const read = await readVocabulary(path('vocab.json'))
  const written = files.separate_vocabs === true ? await readVocabulary(path('target_vocab.json')) : read
  const usual = { eos_token: '</s>', unk_token: '<unk>', pad_token: '<pad>' }
  const special = specialTokens(files, { usual, idOf: read.idOf, path: path('vocab.json') })
  return tokensBy({
    cut(section) {
      const code = language.exec(section)?.[0] ?? ''
      return [...(code === '' ? [] : [code]), ...source.pieces(section.slice(code.length))]
    },
    // Pieces of sources alone are plain text to the target's model.
    shown: { text: (pieces) => target.text(pieces).replaceAll(blank, ' ') },
    added: special.added,
    idOf: read.idOf,
    tokenOf: written.tokenOf,
    unknown: special.idOf('unk_token'),
    ...{ front: [], back: [special.idOf('eos_token')], aroundEach: false },
    ...{ afterSpecial: ' ', trimmed: true, cleanUp: files.clean_up_tokenization_spaces ?? true },
  })
}
