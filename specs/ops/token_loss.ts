/** Negative log-likelihood of one word of each row, by the softmax of its logits. */
import { exp, log, max, maximum, op, row, sum, tensor } from 'heddle'

export const tokenLoss = op('token_loss', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { logits: tensor('T', 'm n'), targets: tensor('i32', 'm') },
  outputs: { y: tensor('f32', 'm') },
  body:
    ({ logits, targets }, { n }) =>
    (m) => {
      const v = row(n, (c) => logits(m, c))
      const top = max(n, (c) => v(c))
      const total = sum(n, (c) => exp(v(c) - top))
      return { y: log(total) + top - logits(m, targets(m)) }
    },
})

/**
 * Negative log-likelihood of the word that each row has chosen. A row without a word, with an id below 0, has the loss of word 0, which is
 * meaningless.
 */
export const wordLoss = op('word_loss', {
  dims: ['r', 'v'],
  inputs: { logits: tensor('f32', 'r v'), words: tensor('i32', 'r') },
  outputs: { y: tensor('f32', 'r') },
  facts: { words: { index: 'v', also: [-1] } },
  body:
    ({ logits, words }, { v }) =>
    (r) => {
      const x = row(v, (c) => logits(r, c))
      const top = max(v, (c) => x(c))
      const total = sum(v, (c) => exp(x(c) - top))
      return { y: log(total) + top - logits(r, maximum(words(r), 0)) }
    },
})
