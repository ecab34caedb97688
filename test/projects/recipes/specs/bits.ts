/** Bits of floats: words with a weight in half of them, keys that sort as floats do, and scales that are powers of two. */
import { abs, bitsOf, ceil, exp2, floatOfBits, log2, max, maximum, op, row, shiftRightUnsigned, tensor, toInt } from 'heddle'

// #region packed
/** An expert's number and its weight as a bfloat16, in one word. */
export const packRoute = op('pack_route', {
  dims: ['t'],
  inputs: { expert: tensor('i32', 't'), weight: tensor('bf16', 't') },
  facts: { expert: { from: 0, to: 65_535 } },
  outputs: { word: tensor('i32', 't') },
  body:
    ({ expert, weight }) =>
    (t) => ({ word: (expert(t) << 16) | shiftRightUnsigned(bitsOf(weight(t)), 16) }),
})

export const unpackRoute = op('unpack_route', {
  dims: ['t'],
  inputs: { word: tensor('i32', 't') },
  outputs: { expert: tensor('i32', 't'), weight: tensor('f32', 't') },
  body:
    ({ word }) =>
    (t) => ({ expert: shiftRightUnsigned(word(t), 16), weight: floatOfBits(word(t) << 16) }),
})
// #endregion

/** Integers in the order of the floats: keys for a radix sort. */
export const sortKeys = op('sort_keys', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { key: tensor('i32', 'm n') },
  body:
    ({ x }) =>
    (m, c) => {
      const bits = bitsOf(x(m, c))
      return { key: bits ^ ((bits >> 31) & 0x7fffffff) }
    },
})

/** Rows in 8-bit floats whose scale is the least power of two that fits, stored as its exponent. */
export const scaledByPower = op('scaled_by_power', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f8e4m3', 'm n'), exponent: tensor('u8', 'm') },
  body:
    ({ x }, { n }) =>
    (m) => {
      const largest = max(n, (c) => abs(x(m, c)))
      const power = ceil(log2(maximum(largest / 448, 2 ** -120)))
      return { y: row(n, (c) => x(m, c) * exp2(-power)), exponent: 127 + toInt(power) }
    },
})
