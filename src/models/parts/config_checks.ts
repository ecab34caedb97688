/** Checks shared by the configurations of generating models: their two files, their architecture, and token ids. */
import { join } from 'node:path'
import { z } from 'zod'
import { readConfigFile, readOptionalConfigFile } from '../../checkpoint/config_file.js'
import { shown } from '../../checkpoint/safetensors_header.js'
import { usageError } from '../../errors.js'

/** A token id. */
export const token = z.int().nonnegative()

/** Fields that list tokens banned from results. */
export const bannedFields = {
  bad_words_ids: z.array(z.array(token).min(1)).nullish(),
  suppress_tokens: z.array(token).nullish(),
}

type BannedFields = z.output<z.ZodObject<typeof bannedFields>>

/**
 * Reads `config.json` and, if there is one, `generation_config.json` of a model folder.
 * @throws usage `config.read`, `config.json`, and what `parse` throws
 */
export async function readModelConfig<T>(
  dir: string,
  parse: (value: unknown, name: string, generation: unknown, generationName: string) => T,
): Promise<T> {
  const path = join(dir, 'config.json')
  const value = await readConfigFile(path)
  const generation = join(dir, 'generation_config.json')
  return parse(value, path, (await readOptionalConfigFile(generation)) ?? {}, generation)
}

interface Stated {
  readonly model_type: string
  readonly architectures?: readonly string[] | null | undefined
}

/** @throws usage `config.architecture` if the configuration names an architecture other than that of its model type */
export function expectArchitecture({ model_type: type, architectures }: Stated, supported: string, name: string): void {
  const [found = supported] = architectures ?? []
  if (found === supported) return
  throw usageError('config.architecture', `${name}: architecture ${shown(found)} is not supported`, {
    hint: `supported for ${type}: ${supported}`,
  })
}

/** Returns a field's token id if it is in the vocabulary. @throws usage `config.token` */
export function checkToken(name: string, field: string, id: number, vocab: number): number {
  if (id < vocab) return id
  throw usageError('config.token', `${name}: ${field} ${id} is not in [0, ${vocab})`, {
    hint: 'token ids are rows of the embeddings',
  })
}

/**
 * Tokens banned from results. HF ignores bad words that are end ids.
 * @throws usage `config.bad_words` for a sequence of several tokens, or if no token is left to choose; `config.token`
 */
export function bannedTokens(
  name: string,
  { bad_words_ids: words, suppress_tokens: suppressed }: BannedFields,
  { ends, vocab }: { readonly ends: readonly number[]; readonly vocab: number },
): number[] {
  const refused = (what: string, hint?: string) => usageError('config.bad_words', `${name}: ${what}`, { hint })
  const banned = new Set((suppressed ?? []).map((id) => checkToken(name, 'suppress_tokens', id, vocab)))
  for (const [id, ...more] of words ?? []) {
    if (id === undefined || more.length > 0) {
      const hint = 'single tokens can be banned, sequences of them cannot'
      throw refused(`bad_words_ids has ${shown(JSON.stringify([id, ...more]))}, expected lists of one token`, hint)
    }
    if (!ends.includes(id)) banned.add(checkToken(name, 'bad_words_ids', id, vocab))
  }
  // If only end ids remain, every result is empty.
  if (banned.size === 0 || new Set([...banned, ...ends]).size < vocab) return [...banned]
  throw refused(`bad_words_ids and suppress_tokens ban all ${vocab} tokens but end ids, so every result would be empty`)
}
