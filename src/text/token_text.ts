/**
 * Streams token ids to text. The text equals that of decoding all ids at once, from the beginning. A character that is split over tokens appears with
 * its last one. A blank that a tokenizer strips at the beginning of a text is preserved elsewhere.
 */
import type { Tokenizer } from './tokenizer.js'

export interface TokenText {
  /** Text that a token adds; empty while a character is incomplete. */
  push(id: number): string
  /** Remaining text when no token follows: a character that stayed incomplete. */
  finish(): string
}

/** Replacement for bytes that form no character, or not yet one. */
const replacement = '\uFFFD'

/**
 * Text of streamed ids.
 * @param before ids that the new ids continue, such as a prompt's: their text is not shown, but a blank after it is
 */
export function tokenText(tokenizer: Pick<Tokenizer, 'decode'>, before: readonly number[] = []): TokenText {
  const decode = (ids: readonly number[]): string => tokenizer.decode(ids, { cleanUp: false })
  /** Suffix of all ids, long enough to put text before the text to be shown next. */
  let ids = endOf(before, decode)
  const given = decode(ids)
  const split = given.endsWith(replacement)
  /** Number of characters of the text that were emitted. */
  let shown = split ? given.length - 1 : given.length
  /** Number of ids up to the last position at which every character is complete. */
  let complete = split ? 0 : ids.length

  /** Drops ids that cannot influence further text. */
  const forget = (text: string): void => {
    const rest = decode(ids.slice(complete))
    // A decoder strips the beginning of a text, so other text must precede the text to decode.
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
    // Of several incomplete characters, only the last can become complete.
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

/** The shortest suffix of ids with a non-empty text. */
function endOf(ids: readonly number[], decode: (ids: readonly number[]) => string): number[] {
  for (let count = 8; count < ids.length; count *= 2) {
    const end = ids.slice(-count)
    if (decode(end) !== '') return end
  }
  return [...ids]
}
