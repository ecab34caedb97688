/** A gate of a mixture of experts. */
import { exp, op, row, tensor, topK } from 'heddle'

/** The weights of the three largest of a row's logits, softmax over those three, and 0 elsewhere. */
export const topThreeGate = op('top_three_gate', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { logits: tensor('T', 'm n') },
  outputs: { weights: tensor('T', 'm n') },
  facts: { n: { atLeast: 3 } },
  body:
    ({ logits }, { n }) =>
    (m) => {
      const best = topK(3, n, (c) => logits(m, c))
      const second = exp(best.values(1) - best.values(0))
      const third = exp(best.values(2) - best.values(0))
      const total = 1 + second + third
      const first = best.indices(0)
      return {
        weights: row(n, (e) => (e === first ? 1 : e === best.indices(1) ? second : e === best.indices(2) ? third : 0) / total),
      }
    },
})
