/** Ops of a separate project: one with indices and labels, one that shares the name of a shipped one, and two to fuse. */
import { exp, log, max, maximum, minimum, op, row, rsqrt, sum, tensor } from 'heddle'

/** Cross entropy of each row; rows whose label is -100 count nothing. */
export const rowLoss = op('row_loss', {
  dims: ['m', 'v'],
  types: { T: ['f32', 'f16'] },
  inputs: { logits: tensor('T', 'm v'), labels: tensor('i32', 'm') },
  outputs: { loss: tensor('f32', 'm') },
  facts: { labels: { index: 'v', also: [-100] } },
  body:
    ({ logits, labels }, { v }) =>
    (m) => {
      const top = max(v, (c) => logits(m, c))
      const total = sum(v, (c) => exp(logits(m, c) - top))
      const label = labels(m)
      const picked = logits(m, maximum(label, 0))
      return { loss: label < 0 ? 0 : log(total) + top - picked }
    },
})

/** Rows of a table, summed bag by bag: bag `b` has the ids from `offsets(b)` to `offsets(b + 1)`. */
export const bagSum = op('bag_sum', {
  dims: ['b', 'e', 'i', 't', 'n'],
  types: { T: ['f32', 'f16'] },
  inputs: { table: tensor('T', 't n'), ids: tensor('i32', 'i'), offsets: tensor('i32', 'e') },
  outputs: { y: tensor('T', 'b n') },
  facts: { ids: { index: 't' }, offsets: { from: 0, to: 'i', order: 'ascending' }, e: { atLeast: 'b' }, i: 37 },
  body:
    ({ table, ids, offsets }, { e }) =>
    (b, c) => {
      const first = offsets(0 + b)
      const last = offsets(minimum(b + 1, e - 1))
      return { y: sum(last - first, (k) => table(ids(first + k), c)) }
    },
})

/** Softmax of half the logits, which differs from the shipped op of that name. */
export const softmax = op('softmax', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16'] },
  inputs: { z: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ z }, { n }) =>
    (m) => {
      const top = max(n, (c) => z(m, c))
      const e = row(n, (c) => exp(0.5 * (z(m, c) - top)))
      const total = sum(n, e)
      return { y: row(n, (c) => e(c) / total) }
    },
})

export const shift = op('shift', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16'] },
  inputs: { x: tensor('T', 'm n'), by: tensor('T', 'n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x, by }) =>
    (m, c) => ({ y: x(m, c) + by(c) }),
})

export const rmsNorm = op('rms_norm', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16'] },
  inputs: { x: tensor('T', 'm n'), gamma: tensor('T', 'n') },
  outputs: { y: tensor('T', 'm n') },
  attrs: { eps: 1e-6 },
  body:
    ({ x, gamma }, { n, eps }) =>
    (m) => {
      const v = row(n, (c) => x(m, c))
      const scale = rsqrt(sum(n, (c) => v(c) ** 2) / n + eps)
      return { y: row(n, (c) => v(c) * scale * gamma(c)) }
    },
})
