/** Log-probabilities of all words of each row. A beam search by Hugging Face's rule with processors changes these instead of logits. */
import { exp, log, max, maximum, op, row, sum, tensor } from 'heddle'

/** Logits below this have probability zero, so that a row of only -Infinity gives no NaN. */
const lowest = -3e38

export const logSoftmax = op('log_softmax', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x }, { n }) =>
    (m) => {
      const v = row(n, (c) => x(m, c))
      const top = maximum(
        max(n, (c) => v(c)),
        lowest,
      )
      const total = sum(n, (c) => exp(v(c) - top))
      return { y: row(n, (c) => v(c) - top - log(total)) }
    },
})
