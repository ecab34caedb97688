/**
 * Prefix reuse: tracks the tokens that the caches of rows hold from the previous run. The shared prefix of a prompt need not be read again,
 * so each turn of a conversation reads only the new message.
 */
import type { Rows } from './rows.js'

export interface PrefixCache {
  /**
   * Returns the number of tokens of each prompt that its row's cache already holds, at most all but the last. Forgets the cached tokens until
   * the next `keep`, so that a failed run leaves nothing to reuse.
   */
  take(rows: Rows, prompts: readonly (readonly number[])[]): number[]
  /** Records that caches hold prompts and the texts generated after them. */
  keep(rows: Rows, prompts: readonly (readonly number[])[], texts: readonly (readonly number[])[]): void
}

/**
 * Tokens at the end of a text that are read again: the last chosen token is not yet cached, and a row that has ended may overwrite its
 * last position.
 */
const unsettled = 2

export function prefixCache(): PrefixCache {
  const cached = new WeakMap<Rows, readonly (readonly number[])[]>()
  return {
    take(rows, prompts) {
      const before = cached.get(rows) ?? []
      cached.delete(rows)
      return prompts.map((ids, row) => Math.min(commonPrefix(before[row] ?? [], ids), ids.length - 1))
    },
    keep(rows, prompts, texts) {
      cached.set(
        rows,
        prompts.map((ids, row) => {
          const text = texts[row] ?? []
          return text.length < unsettled ? ids.slice(0, -1) : [...ids, ...text.slice(0, -unsettled)]
        }),
      )
    },
  }
}

/** Length of the common prefix of two lists of ids. */
export function commonPrefix(a: readonly number[], b: readonly number[]): number {
  const most = Math.min(a.length, b.length)
  for (let i = 0; i < most; i++) if (a[i] !== b[i]) return i
  return most
}
