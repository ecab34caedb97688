/** Rows: reductions of a row are computed once and used for each of its elements. */
import { exp, log, max, op, row, sum, tensor } from 'heddle'

// #region softmax
export const softmax = op('tempered_softmax', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  attrs: { temperature: 1 },
  body:
    ({ x }, { n, temperature }) =>
    (m) => {
      const v = row(n, (c) => x(m, c) / temperature)
      const top = max(n, (c) => v(c))
      const e = row(n, (c) => exp(v(c) - top))
      const total = sum(n, (c) => e(c))
      return { y: row(n, (c) => e(c) / total) }
    },
})
// #endregion

// #region loss
/** Cross-entropy of rows of logits. Labels of -100 are ignored, as in PyTorch; `logSum` is for a backward pass. */
export const crossEntropy = op('cross_entropy', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { logits: tensor('T', 'm n'), labels: tensor('i32', 'm') },
  outputs: { loss: tensor('f32', 'm'), logSum: tensor('f32', 'm') },
  facts: { n: { atLeast: 1 }, labels: { index: 'n', also: [-100] } },
  body:
    ({ logits, labels }, { n }) =>
    (m) => {
      const v = row(n, (c) => logits(m, c))
      const top = max(n, (c) => v(c))
      const logSum = log(sum(n, (c) => exp(v(c) - top))) + top
      const label = labels(m)
      const isCounted = label !== -100
      return { loss: isCounted ? logSum - logits(m, isCounted ? label : 0) : 0, logSum }
    },
})
// #endregion
