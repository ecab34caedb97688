/** Special tokens of a tokenizer: defaults of its class, overrides from files, and their ids. */
import { usageError } from '../../errors.js'
import type { AddedToken } from './token_rules.js'
import { contentOf, type TokenizerFiles } from './tokenizer_files.js'

/** Default tokens of a class by name; undefined if it has none. */
export type SpecialNames = Readonly<Partial<Record<'bos_token' | 'eos_token' | 'unk_token' | 'pad_token' | 'mask_token', string>>>

/** Tokens that a tokenizer splits off texts, and those that its class names. */
export interface SpecialTokens {
  readonly added: readonly AddedToken[]
  /** Id of a named token. @throws usage `tokenizer.invalid` if there is none */
  idOf(name: keyof SpecialNames): number
}

/**
 * Added tokens of a folder.
 * @param usual defaults of the class
 * @param more other special tokens of the class
 * @param idOf ids of the vocabulary
 * @throws usage `tokenizer.invalid` for a special token without an id
 */
export function specialTokens(
  files: TokenizerFiles,
  {
    usual,
    more = [],
    idOf,
    path,
  }: {
    readonly usual: SpecialNames
    readonly more?: readonly string[]
    readonly idOf: (content: string) => number | undefined
    readonly path: string
  },
): SpecialTokens {
  const named = (name: keyof SpecialNames): string | undefined => contentOf(files[name]) ?? usual[name]
  const stated = [...(files.additional_special_tokens ?? []), ...Object.values(files.extra_special_tokens ?? {})].map(contentOf)
  const names: readonly (keyof SpecialNames)[] = ['bos_token', 'eos_token', 'unk_token', 'pad_token', 'mask_token']
  const contents = [...new Set([...names.map(named), ...stated, ...more])].filter((each) => each !== undefined)
  const byContent = new Map(files.ids.map((token) => [token.content, token]))
  const added = new Map(files.ids.map((token) => [token.content, token]))
  for (const content of contents) {
    const id = byContent.get(content)?.id ?? idOf(content)
    if (id === undefined) {
      throw usageError('tokenizer.invalid', `${path}: the special token ${JSON.stringify(content)} has no id`, {
        hint: 'state it in added_tokens_decoder of tokenizer_config.json, or in added_tokens.json',
      })
    }
    added.set(content, { lstrip: false, rstrip: false, ...byContent.get(content), content, id, special: true })
  }
  return {
    added: [...added.values()],
    idOf(name) {
      const token = added.get(named(name) ?? '')
      if (token !== undefined) return token.id
      throw usageError('tokenizer.invalid', `${path}: the tokenizer has no ${name}`)
    },
  }
}
