/**
 * Negative log-likelihood of the word that each beam has chosen, by the softmax of the logits of its parent. A row without a word, with an id below 0,
 * has the loss of word 0, which is meaningless.
 */
import { exp, log, max, maximum, op, row, sum, tensor } from 'heddle'

export const beamLoss = op('beam_loss', {
  dims: ['r', 'v'],
  inputs: { logits: tensor('f32', 'r v'), words: tensor('i32', 'r'), parents: tensor('i32', 'r') },
  outputs: { y: tensor('f32', 'r') },
  facts: { words: { index: 'v', also: [-1] }, parents: { index: 'r' } },
  body:
    ({ logits, words, parents }, { v }) =>
    (r) => {
      const x = row(v, (c) => logits(parents(r), c))
      const top = max(v, (c) => x(c))
      const total = sum(v, (c) => exp(x(c) - top))
      return { y: log(total) + top - logits(parents(r), maximum(words(r), 0)) }
    },
})
