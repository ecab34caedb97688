/**
 * What the caches of rows hold from the run before: a prompt that begins with the same tokens need not be read again up to where it
 * differs. A conversation's turn is read by its new message alone.
 */
import type { Rows } from './rows.js'

export interface HeldPrefixes {
  /**
   * Tokens of each prompt that its row's cache holds already, all but the last token at most. What is held is forgotten until `keep` says
   * what holds again: a run that fails leaves nothing behind.
   */
  take(rows: Rows, prompts: readonly (readonly number[])[]): number[]
  /** Says that caches hold prompts, and texts behind them as far as those were chosen. */
  keep(rows: Rows, prompts: readonly (readonly number[])[], texts: readonly (readonly number[])[]): void
}

/**
 * Of a text, the last token chosen is not yet in a cache, and a row that has ended may write at its last place again: both are read again
 * where they are wanted.
 */
const unsettled = 2

export function heldPrefixes(): HeldPrefixes {
  const held = new WeakMap<Rows, readonly (readonly number[])[]>()
  return {
    take(rows, prompts) {
      const before = held.get(rows) ?? []
      held.delete(rows)
      return prompts.map((ids, row) => Math.min(commonPrefix(before[row] ?? [], ids), ids.length - 1))
    },
    keep(rows, prompts, texts) {
      held.set(
        rows,
        prompts.map((ids, row) => {
          const text = texts[row] ?? []
          return text.length < unsettled ? ids.slice(0, -1) : [...ids, ...text.slice(0, -unsettled)]
        }),
      )
    },
  }
}

/** How many ids two lists begin with alike. */
export function commonPrefix(a: readonly number[], b: readonly number[]): number {
  const most = Math.min(a.length, b.length)
  for (let i = 0; i < most; i++) if (a[i] !== b[i]) return i
  return most
}
