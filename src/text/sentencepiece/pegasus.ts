/**
 * Pegasus' tokenizer (tokenization_pegasus.py of transformers): the first ids are padding, the end, two masks and training tokens, and replace the
 * model's own first pieces. Every other piece has its own id plus an offset.
 */
import { join } from 'node:path'
import { usageError } from '../../errors.js'
import type { TokenLibrary } from '../token_library.js'
import { processorOf } from './processor.js'
import { specialTokens } from './special_tokens.js'
import { tokensBy } from './token_rules.js'
import { contentOf, readPieceModel, type TokenizerFiles } from './tokenizer_files.js'

const usualOffset = 103
/** First id of the masks; those of training tokens follow. */
const masks = 2

/** @throws usage `tokenizer.read`, `tokenizer.invalid` naming the file */
export async function pegasusTokenizer(dir: string, files: TokenizerFiles): Promise<TokenLibrary> {
  const path = join(dir, 'spiece.model')
  const model = await readPieceModel(path)
  const own = processorOf(model)
  const offset = files.offset ?? usualOffset
  const usual = { eos_token: '</s>', unk_token: '<unk>', pad_token: '<pad>', mask_token: '<mask_2>' }
  const name = (which: 'eos_token' | 'pad_token' | 'mask_token'): string => contentOf(files[which]) ?? usual[which]
  const sentence = files.mask_token_sent === undefined ? '<mask_1>' : contentOf(files.mask_token_sent)
  const training = trainingTokens(files, { sentence, offset, path })
  const first = [
    ...[name('pad_token'), name('eos_token')],
    ...(sentence === undefined ? [] : [sentence, name('mask_token')]),
    ...(offset === 0 ? [] : training.slice(1)),
  ]
  const ids = new Map<string, number>()
  const tokens = new Map<number, string>()
  for (const [id, token] of [...model.pieces.map((piece, i) => [i + offset, piece.text] as const), ...first.entries()]) {
    ids.set(token, id)
    tokens.set(id, token)
  }
  const special = specialTokens(files, { usual, more: training, idOf: (token) => ids.get(token), path })
  return tokensBy({
    cut: (section) => own.pieces(section),
    shown: own,
    added: special.added,
    idOf: (token) => ids.get(token),
    tokenOf: (id) => tokens.get(id),
    unknown: special.idOf('unk_token'),
    ...{ front: [], back: [special.idOf('eos_token')], aroundEach: false },
    ...{ afterSpecial: '', trimmed: true, cleanUp: files.clean_up_tokenization_spaces ?? true },
  })
}

/** The sentence mask, if there is one, and the training tokens, as many as the offset leaves room for. */
function trainingTokens(
  files: TokenizerFiles,
  { sentence, offset, path }: { readonly sentence: string | undefined; readonly offset: number; readonly path: string },
): readonly string[] {
  if (offset > 0 && sentence === undefined) {
    throw usageError('tokenizer.invalid', `${path}: mask_token_sent is null, and the offset is ${offset}`, {
      hint: 'a tokenizer without the mask has "offset": 0 in tokenizer_config.json',
    })
  }
  const filled = (from: number): string[] => Array.from({ length: Math.max(0, offset - 1 - from) }, (_, i) => `<unk_${from + i}>`)
  const stated = files.additional_special_tokens?.flatMap((each) => contentOf(each) ?? [])
  const front = sentence === undefined ? [] : [sentence]
  if (stated === undefined) {
    return [...front, ...Array.from({ length: Math.max(0, offset - masks) }, (_, i) => `<unk_${i + masks}>`)]
  }
  const begun = sentence !== undefined && stated.includes(sentence) ? stated : [...front, ...stated]
  const all = [...begun, ...filled(begun.length)]
  if (new Set(all).size === all.length) return all
  throw usageError(
    'tokenizer.invalid',
    `${path}: additional_special_tokens of tokenizer_config.json has a token twice when it is filled`,
  )
}
