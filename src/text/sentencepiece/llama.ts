/**
 * LLaMA's first tokenizer (tokenization_llama.py of transformers): pieces have their own ids, texts begin with `<s>`. Each section between special
 * tokens is prefixed with a blank, or, if `legacy` is false, only the text as a whole.
 */
import { join } from 'node:path'
import type { TokenLibrary } from '../token_library.js'
import { blank } from './normalise.js'
import { processorOf } from './processor.js'
import { specialTokens } from './special_tokens.js'
import { tokensBy } from './token_rules.js'
import { readPieceModel, type TokenizerFiles } from './tokenizer_files.js'

/** @throws usage `tokenizer.read`, `tokenizer.invalid` naming the file */
export async function llamaTokenizer(dir: string, files: TokenizerFiles): Promise<TokenLibrary> {
  const path = join(dir, 'tokenizer.model')
  const model = await readPieceModel(path)
  const own = processorOf(model)
  const ids = new Map(model.pieces.map(({ text }, id) => [text, id]))
  const idOf = (token: string): number | undefined => ids.get(token)
  const usual = { bos_token: '<s>', eos_token: '</s>', unk_token: '<unk>' }
  const special = specialTokens(files, { usual, idOf, path })
  const each = files.legacy ?? true
  const front = files.add_prefix_space ?? true
  return tokensBy({
    // If only the whole text is prefixed with a blank, blank signs in the text become blanks.
    cut: (section, first) => (each ? own.pieces(section) : own.pieces(section.replaceAll(blank, ' '), first && front)),
    shown: own,
    added: special.added,
    idOf,
    tokenOf: (id) => model.pieces[id]?.text,
    unknown: special.idOf('unk_token'),
    front: (files.add_bos_token ?? true) ? [special.idOf('bos_token')] : [],
    back: files.add_eos_token === true ? [special.idOf('eos_token')] : [],
    ...{ aroundEach: true, afterSpecial: '', trimmed: false },
    cleanUp: files.clean_up_tokenization_spaces ?? false,
  })
}
