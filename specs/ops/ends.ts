/** End ids: a test for them, and their exclusion before a row may end. */
import { max, op, tensor } from 'heddle'

type Ends = (k: number) => number

/** True if a word is one of `e` end ids, of which there are few. */
export const isEnd = (ends: Ends, e: number, word: number): boolean => max(e, (k) => (ends(k) === word ? 1 : 0)) === 1

/** Logits with end ids at -Infinity, in rows with fewer than their least tokens. `step` counts tokens. */
export const suppressEnds = op('suppress_ends', {
  dims: ['r', 'v', 'o', 'e'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { logits: tensor('T', 'r v'), step: tensor('i32', 'o'), minimum: tensor('i32', 'r'), ends: tensor('i32', 'e') },
  outputs: { y: tensor('T', 'r v') },
  facts: { step: { values: [2] }, minimum: { values: [0, 3, 0] }, ends: { index: 'v', values: [0, 2] }, o: 1 },
  body:
    ({ logits, step, minimum, ends }, { e }) =>
    (r, c) => {
      const end = isEnd(ends, e, c)
      return { y: end && step(0) < minimum(r) ? -Infinity : logits(r, c) }
    },
})
