/** The shared memory of a block that statements of a kernel take before any is scheduled: what is refused where an op has more of them. */
import type { Stmt } from './index.js'

/** Elements that rows kept whole may have together: 32 KiB. */
export const longestWhole = 8192

/** Words of 32 bits that rows in shared memory may take together; reductions exchange in the rest of 48 KiB. */
export const sharedWords = 10240

/** Words of a statement: a sorted row has keys of two words, as many as the next power of two. */
function words(s: Stmt): number {
  if (s.kind === 'argsort') return 2 * 2 ** Math.ceil(Math.log2(Math.max(1, s.most)))
  if (s.kind !== 'counts') return 0
  return s.bins.kind === 'const' ? Number(s.bins.value) : s.most
}

/** Words that sorted rows and counts take of the shared memory of a block. */
export const wordsOf = (body: readonly Stmt[]): number => body.reduce((sum, s) => sum + words(s), 0)
