/** Converts streamed token ids to text that may be shown: whole characters, without anything that may begin a stop string. */

import { stopStrings } from './stop_strings.js'
import { tokenText } from './token_text.js'
import type { Tokenizer } from './tokenizer.js'

export interface ShownText {
  /** Text that ids add. Ids after a stop string add nothing. */
  push(ids: readonly number[]): string
  /** Text that was held back, when no ids follow. */
  finish(): string
  /** Stop string that ended the text. */
  readonly stop: string | undefined
  /** Ids up to the one that ended the text; all ids if none did. */
  readonly ids: readonly number[]
}

/** @throws usage `generate.stop` */
export function shownText(tokenizer: Pick<Tokenizer, 'decode'>, stops: readonly string[] = []): ShownText {
  const text = tokenText(tokenizer)
  const search = stopStrings(stops)
  const ids: number[] = []
  let stop: string | undefined
  const show = (piece: string): string => {
    const shown = search.push(piece)
    stop ??= shown.stop
    return shown.text
  }
  return {
    push(more) {
      let shown = ''
      for (const id of more) {
        if (stop !== undefined) break
        ids.push(id)
        shown += show(text.push(id))
      }
      return shown
    },
    finish: () => (stop === undefined ? show(text.finish()) + search.finish() : ''),
    get stop() {
      return stop
    },
    ids,
  }
}
