/** Attention of other families: a bias by buckets of distance, and the difference of two softmaxes. */
import { exp, floor, log, max, maximum, minimum, op, row, sum, tensor, toFloat, toInt } from 'heddle'

const types = { T: ['f32', 'f16'] } as const

export const weigh = op('weigh', {
  dims: ['m', 'n'],
  types,
  inputs: { scores: tensor('T', 'm n') },
  outputs: { weights: tensor('T', 'm n') },
  body:
    ({ scores }, { n }) =>
    (m) => {
      const top = max(n, (c) => scores(m, c))
      const power = row(n, (c) => exp(scores(m, c) - top))
      const total = sum(n, (c) => power(c))
      return { weights: row(n, (c) => power(c) / total) }
    },
})

/** T5: sixteen buckets for each side, the first eight of one distance each and the others wider and wider. */
export const bucketed = op('bucketed', {
  dims: ['b', 'h', 'q', 'k', 'n'],
  types,
  inputs: { scores: tensor('T', 'b h q k'), bias: tensor('f32', 'n h') },
  outputs: { y: tensor('T', 'b h q k') },
  facts: { n: 32 },
  body:
    ({ scores, bias }) =>
    (b, h, q, k) => {
      const distance = k < q ? q - k : k - q
      const far = minimum(8 + toInt(floor((log(toFloat(maximum(distance, 1)) / 8) / log(16)) * 8)), 15)
      return { y: scores(b, h, q, k) + bias((k > q ? 16 : 0) + (distance < 8 ? distance : far), h) }
    },
})

/** The result of one attention minus a share of another's, with one share per head. */
export const lessShare = op('less_share', {
  dims: ['b', 's', 'h', 'e'],
  types,
  inputs: { first: tensor('T', 'b s h e'), second: tensor('T', 'b s h e'), share: tensor('f32', 'h') },
  outputs: { y: tensor('T', 'b s h e') },
  body:
    ({ first, second, share }) =>
    (b, s, h, e) => ({ y: first(b, s, h, e) - share(h) * second(b, s, h, e) }),
})
