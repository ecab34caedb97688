/** Words that a text has to begin and end with, as the forced tokens of Hugging Face's `generate`. */
import { op, tensor } from 'heddle'
import { isEnd } from './ends.js'

/**
 * Logits in rows where only a forced word can be chosen: 0 of that word, -Infinity of all others. `step` counts the tokens before this one. The first
 * token of a row is `first`; a value below 0 leaves it free. The token with which a row reaches `most` tokens is one of `last`; a first value below 0
 * leaves it free. A token that is both is the last.
 */
export const forceWords = op('force_words', {
  dims: ['r', 'v', 'o', 'f'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: {
    logits: tensor('T', 'r v'),
    step: tensor('i32', 'o'),
    first: tensor('i32', 'r'),
    most: tensor('i32', 'r'),
    last: tensor('i32', 'f'),
  },
  outputs: { y: tensor('T', 'r v') },
  facts: {
    step: { values: [0] },
    first: { values: [-1, 2, 1] },
    most: { values: [4, 4, 4, 4, 1] },
    last: { index: 'v', values: [0, 2] },
    o: 1,
  },
  body:
    ({ logits, step, first, most, last }, { f }) =>
    (r, c) => {
      const isLast = step(0) + 1 >= most(r) && last(0) >= 0
      const isFirst = step(0) === 0 && first(r) >= 0
      const ends = isEnd(last, f, c)
      const fits = isLast ? ends : first(r) === c
      return { y: isLast || isFirst ? (fits ? 0 : -Infinity) : logits(r, c) }
    },
})
