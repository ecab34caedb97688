/**
 * Rules of Hugging Face's tokenizers around SentencePiece: added tokens, which are split off a text first, ids of their own, and special tokens
 * before and after a text (tokenization_utils.py of transformers).
 */
import type { TokenLibrary } from '../token_library.js'
import type { PieceProcessor } from './processor.js'

/** A token that is searched for in texts unchanged. */
export interface AddedToken {
  readonly content: string
  readonly id: number
  /** True if decoding drops it. */
  readonly special: boolean
  /** True if blanks before it, or after it, belong to it. */
  readonly lstrip: boolean
  readonly rstrip: boolean
}

export interface TokenRules {
  /** Pieces of a section of a text. @param first true if it begins the text */
  cut(section: string, first: boolean): readonly string[]
  /** Decoder of pieces. */
  readonly shown: Pick<PieceProcessor, 'text'>
  readonly added: readonly AddedToken[]
  /** Id of any other token. */
  idOf(piece: string): number | undefined
  tokenOf(id: number): string | undefined
  /** Id of unknown tokens. */
  readonly unknown: number
  /** Ids before each text, and those after the last. */
  readonly front: readonly number[]
  readonly back: readonly number[]
  /** True if a second text has `front` too, and the first has `back`. */
  readonly aroundEach: boolean
  /** Text after a special token in decoded text. */
  readonly afterSpecial: string
  /** True if blanks around decoded text are removed. */
  readonly trimmed: boolean
  /** True if blanks before punctuation are removed. */
  readonly cleanUp: boolean
}

/** Blanks before English punctuation and contractions, as removed by Hugging Face (`clean_up_tokenization`). */
const cleaned = [' .', ' ?', ' !', ' ,', " ' ", " n't", " 'm", " 's", " 've", " 're"] as const
const cleanUp = (text: string): string => cleaned.reduce((rest, part) => rest.replaceAll(part, part.trim()), text)

/** Added tokens by content and by id. */
const addedOf = ({ added }: Pick<TokenRules, 'added'>) => ({
  byContent: new Map(added.map((token) => [token.content, token])),
  byId: new Map(added.map((token) => [token.id, token])),
})

/** The tokenizer that rules describe. */
export function tokensBy(rules: TokenRules): TokenLibrary {
  const { byContent, byId } = addedOf(rules)
  const unknown = byId.get(rules.unknown)?.content ?? rules.tokenOf(rules.unknown) ?? ''
  const tokenOf = (id: number): string => byId.get(id)?.content ?? rules.tokenOf(id) ?? unknown
  const idOf = (token: string): number | undefined => byContent.get(token)?.id ?? rules.idOf(token)
  const cut = cutBy(rules)
  return {
    encode(text, { add_special_tokens: special, text_pair: pair, return_token_type_ids: typed }) {
      const { aroundEach: each } = rules
      const [front, back] = special ? [rules.front.map(tokenOf), rules.back.map(tokenOf)] : [[], []]
      const first = [...front, ...cut(text), ...(pair === undefined || each ? back : [])]
      const second = pair === undefined ? [] : [...(each ? front : []), ...cut(pair), ...back]
      const tokens = [...first, ...second]
      const types = [...first.map(() => 0), ...second.map(() => (each ? 1 : 0))]
      const ids = tokens.map((token) => idOf(token) ?? rules.unknown)
      return { ids, tokens, ...(typed === true && { token_type_ids: types }) }
    },
    decode(ids, { skip_special_tokens: bare, clean_up_tokenization_spaces: requested }) {
      let [text, run]: [string, string[]] = ['', []]
      for (const token of ids.map(tokenOf)) {
        const special = byContent.get(token)
        if (special === undefined) run.push(token)
        else if (!bare || !special.special) {
          text += `${rules.shown.text(run)}${token}${rules.afterSpecial}`
          run = []
        }
      }
      text += rules.shown.text(run)
      if (rules.trimmed) text = text.trim()
      return (requested ?? rules.cleanUp) ? cleanUp(text) : text
    },
    token_to_id: idOf,
    id_to_token: (id) => byId.get(id)?.content ?? rules.tokenOf(id),
  }
}

/** A function that splits texts: added tokens are split off first, then each section between them is split into pieces. */
function cutBy(rules: TokenRules): (text: string) => readonly string[] {
  const { byContent } = addedOf(rules)
  const contents = [...byContent.keys()].sort((a, b) => b.length - a.length)
  const splitter = contents.length === 0 ? undefined : new RegExp(`(${contents.map(escaped).join('|')})`, 'u')
  return (text) => {
    const sections = (splitter === undefined ? [text] : text.split(splitter)).filter((section) => section !== '')
    return sections.flatMap((section, i) => {
      if (byContent.has(section)) return [section]
      const [before, after] = [byContent.get(sections[i - 1] ?? ''), byContent.get(sections[i + 1] ?? '')]
      const left = before?.rstrip === true ? section.trimStart() : section
      return rules.cut(after?.lstrip === true ? left.trimEnd() : left, i === 0)
    })
  }
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
