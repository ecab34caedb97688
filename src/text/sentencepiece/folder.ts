/**
 * Tokenizers of model folders with SentencePiece models and no `tokenizer.json`. The class of a folder's tokenizer is found by its
 * `tokenizer_config.json` or else its model type, as in Hugging Face's AutoTokenizer.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readOptionalConfigFile } from '../../checkpoint/config_file.js'
import type { TokenLibrary } from '../token_library.js'
import { llamaTokenizer } from './llama.js'
import { marianTokenizer } from './marian.js'
import { pegasusTokenizer } from './pegasus.js'
import { readTokenizerFiles, type TokenizerFiles } from './tokenizer_files.js'

interface TokenizerClass {
  readonly names: RegExp
  readonly types: readonly string[]
  /** A file that every folder of the class has. */
  readonly file: string
  load(dir: string, files: TokenizerFiles): Promise<TokenLibrary>
}

const classes: readonly TokenizerClass[] = [
  { names: /^MarianTokenizer$/, types: ['marian'], file: 'source.spm', load: marianTokenizer },
  { names: /^PegasusTokenizer(?:Fast)?$/, types: ['pegasus'], file: 'spiece.model', load: pegasusTokenizer },
  { names: /^LlamaTokenizer(?:Fast)?$/, types: ['llama', 'mistral', 'phi3'], file: 'tokenizer.model', load: llamaTokenizer },
]

/**
 * The tokenizer of a folder, and the file it was made from; undefined if the folder has none of a known class.
 * @throws usage `tokenizer.read`, `tokenizer.invalid`, `config.*` with the file and its error
 */
export async function sentencePieceTokenizer(
  dir: string,
): Promise<{ readonly library: TokenLibrary; readonly path: string } | undefined> {
  if (!classes.some(({ file }) => existsSync(join(dir, file)))) return undefined
  const files = await readTokenizerFiles(dir)
  const type = await modelType(dir)
  const named = files.tokenizer_class
  const found = classes.find(({ names, types }) => (named == null ? types.includes(type) : names.test(named)))
  if (found === undefined || !existsSync(join(dir, found.file))) return undefined
  return { library: await found.load(dir, files), path: join(dir, found.file) }
}

async function modelType(dir: string): Promise<string> {
  const config = await readOptionalConfigFile(join(dir, 'config.json'))
  const type: unknown = typeof config === 'object' && config !== null && 'model_type' in config ? config.model_type : undefined
  return typeof type === 'string' ? type : ''
}
