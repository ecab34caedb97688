/** Negative log-likelihood of one word of each row, by the softmax of its logits. */
import { exp, log, max, op, row, sum, tensor } from 'heddle'

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
