/** Shared memory per block that statements of a kernel use before scheduling. Ops that need more are refused. */
import type { Stmt } from './index.js'

/** Largest total of elements of rows that are buffered whole: 32 KiB. */
export const longestWhole = 8192

/** Largest total of 32-bit words of rows in shared memory; reductions exchange partial results in the rest of 48 KiB. */
export const sharedWords = 10240

/** Words of a statement: a sorted row has keys of two words, and their number is rounded up to a power of two. */
function words(s: Stmt): number {
  if (s.kind === 'argsort') return 2 * 2 ** Math.ceil(Math.log2(Math.max(1, s.most)))
  if (s.kind !== 'counts') return 0
  return s.bins.kind === 'const' ? Number(s.bins.value) : s.most
}

/** Words of shared memory per block for sorted rows and counts. */
export const wordsOf = (body: readonly Stmt[]): number => body.reduce((sum, s) => sum + words(s), 0)
