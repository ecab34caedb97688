/**
 * Files next to a SentencePiece model that describe its tokenizer: `tokenizer_config.json`, and `special_tokens_map.json` and `added_tokens.json` of
 * older folders. Settings of the first override those of the others.
 */
import { join } from 'node:path'
import { z } from 'zod'
import { checkFields, readOptionalConfigFile } from '../../checkpoint/config_file.js'
import { usageError } from '../../errors.js'
import { readAt, withFile } from '../../files.js'
import { type PieceModel, parsePieceModel } from './model.js'
import type { AddedToken } from './token_rules.js'

const added = z.looseObject({
  content: z.string().min(1),
  special: z.boolean().default(false),
  lstrip: z.boolean().default(false),
  rstrip: z.boolean().default(false),
  single_word: z.literal(false).default(false),
})
const named = z.union([z.string(), added])
const token = named.nullish()
const id = z
  .int()
  .min(0)
  .max(2 ** 31 - 1)

const schema = z.looseObject({
  tokenizer_class: z.string().nullish(),
  bos_token: token,
  eos_token: token,
  unk_token: token,
  pad_token: token,
  mask_token: token,
  mask_token_sent: token,
  additional_special_tokens: z.array(named).nullish(),
  extra_special_tokens: z.union([z.array(named), z.record(z.string(), named)]).nullish(),
  added_tokens_decoder: z.record(z.string().regex(/^\d+$/), added).nullish(),
  clean_up_tokenization_spaces: z.boolean().nullish(),
  sp_model_kwargs: z.strictObject({}, 'options of SentencePiece are not followed').nullish(),
  offset: id.nullish(),
  legacy: z.boolean().nullish(),
  add_bos_token: z.boolean().nullish(),
  add_eos_token: z.boolean().nullish(),
  add_prefix_space: z.boolean().nullish(),
  separate_vocabs: z.boolean().nullish(),
})

export type TokenizerFiles = z.output<typeof schema> & {
  /** Tokens with ids from the files. */
  readonly ids: readonly AddedToken[]
}

/** Content of a token. */
export const contentOf = (stated: z.output<typeof token>): string | undefined =>
  typeof stated === 'string' ? stated : stated?.content

/**
 * Reads the files of a folder.
 * @throws usage `config.json`, `config.read`, `config.field` with the file and the field
 */
export async function readTokenizerFiles(dir: string): Promise<TokenizerFiles> {
  const path = (name: string): string => join(dir, name)
  const read = async (name: string): Promise<unknown> => (await readOptionalConfigFile(path(name))) ?? {}
  const config = checkFields(schema, await read('tokenizer_config.json'), path('tokenizer_config.json'))
  const special = checkFields(schema, await read('special_tokens_map.json'), path('special_tokens_map.json'))
  const more = checkFields(z.record(z.string().min(1), id), await read('added_tokens.json'), path('added_tokens.json'))
  const stated = Object.entries(config.added_tokens_decoder ?? {}).map(([number, each]) => ({ ...each, id: Number(number) }))
  const plain = Object.entries(more).map(([content, number]) => ({
    ...{ content, id: number, special: true, lstrip: false, rstrip: false },
  }))
  const known = new Set(stated.map(({ content }) => content))
  return { ...special, ...config, ids: [...stated, ...plain.filter(({ content }) => !known.has(content))] }
}

/** The largest model files have 5 MB. */
const mostBytes = 2 ** 28

/** Reads a model file. @throws usage `tokenizer.read`, `tokenizer.invalid` */
export async function readPieceModel(path: string): Promise<PieceModel> {
  const refusal = { code: 'tokenizer.read' } as const
  const bytes = await withFile(path, refusal, async (file, { size }) => {
    if (size > mostBytes)
      throw usageError('tokenizer.read', `cannot read ${path}: it has ${size} bytes, at most ${mostBytes} are read`)
    const target = new Uint8Array(size)
    await readAt(file, target, 0, path, refusal)
    return target
  })
  return parsePieceModel(bytes, path)
}
