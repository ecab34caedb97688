/**
 * Token ids to text as they come. What is shown is what decoding all ids at once gives, from its beginning: a character that is split
 * over tokens appears with its last one, and a blank that a tokenizer takes away at the beginning of a text stays elsewhere.
 */
import type { Tokenizer } from './tokenizer.js'

export interface TokenText {
  /** The text that a token adds; empty while a character is not complete. */
  push(id: number): string
  /** What is left when no token follows: a character that stayed incomplete. */
  finish(): string
}

/** Stands for bytes that are no character, or not yet one. */
const replacement = '\uFFFD'

/**
 * The text of ids that come one by one.
 * @param before ids whose text the new ids continue, such as a prompt's: their text is not shown, but a blank behind it is
 */
export function tokenText(tokenizer: Pick<Tokenizer, 'decode'>, before: readonly number[] = []): TokenText {
  const decode = (ids: readonly number[]): string => tokenizer.decode(ids, { cleanUp: false })
  /** The end of all ids: enough of them that text comes before what is shown next. */
  let ids = endOf(before, decode)
  const given = decode(ids)
  const split = given.endsWith(replacement)
  /** Characters of their text that were shown. */
  let shown = split ? given.length - 1 : given.length
  /** The ids in front of the last place where all characters were complete. */
  let complete = split ? 0 : ids.length

  /** Lets go of ids that the text to come cannot depend on. */
  const forget = (text: string): void => {
    const rest = decode(ids.slice(complete))
    // A decoder treats the beginning of a text as one: text must come before what is decoded next.
    if (rest !== '') {
      ids = ids.slice(complete)
      shown = rest.length
    } else shown = text.length
    complete = ids.length
  }
  const push = (id: number): string => {
    ids.push(id)
    const text = decode(ids)
    const split = text.endsWith(replacement)
    // Of what is no character, only the last can become one.
    const end = split ? text.length - 1 : text.length
    const added = text.slice(shown, end)
    if (split) shown = Math.max(shown, end)
    else forget(text)
    return added
  }
  return {
    push,
    finish() {
      const rest = decode(ids).slice(shown)
      shown += rest.length
      return rest
    },
  }
}

/** As many of the last ids as have a text. */
function endOf(ids: readonly number[], decode: (ids: readonly number[]) => string): number[] {
  for (let count = 8; count < ids.length; count *= 2) {
    const end = ids.slice(-count)
    if (decode(end) !== '') return end
  }
  return [...ids]
}
