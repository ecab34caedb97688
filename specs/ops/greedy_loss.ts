/** The most likely word of each row with its loss, for programs that report the log-probabilities of their words. */
import { argmax, exp, log, max, maximum, op, row, sum, tensor } from 'heddle'
import { choosable, chosen, chosenWord, ending, endings } from './sample.js'

/**
 * As `greedy`, with the negative log-likelihood of each row's word, that of the end id in finished rows. A row without a word has a meaningless loss.
 */
export const greedyLoss = op('greedy_loss', {
  dims: ['r', 'v', 'o', 'e'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { logits: tensor('T', 'r v'), ...ending },
  outputs: { ...chosen, loss: tensor('f32', 'r') },
  facts: { ...endings, ends: { index: 'v', values: [0, 2] } },
  body:
    ({ logits, step, finished, limit, ends }, { v, e }) =>
    (r) => {
      const x = row(v, (c) => logits(r, c))
      const best = argmax(v, (c) => x(c))
      const peak = max(v, (c) => x(c))
      const total = sum(v, (c) => exp(x(c) - peak))
      const word = choosable(peak) ? best : -1
      const said = finished(r) !== 0 ? logits(r, maximum(ends(0), 0)) : logits(r, best)
      const loss = log(total) + peak - said
      const { words, finishedAfter } = chosenWord(word, finished(r), step(0) + 1 >= limit(r), ends, e)
      return { words, finishedAfter, loss }
    },
})
