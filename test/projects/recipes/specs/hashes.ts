/** Arithmetic on 32 bits without a sign: hashes and generators of random numbers. */
import { int, op, shiftRightUnsigned, tensor, wrappingAdd, wrappingMul } from 'heddle'

// #region murmur
const rotateLeft = (x: number, places: number) => (x << places) | shiftRightUnsigned(x, 32 - places)

/** The last steps of MurmurHash3 (32 bits), of a key mixed with a seed. */
export const murmur = op('murmur', {
  dims: ['n'],
  inputs: { key: tensor('i32', 'n') },
  outputs: { hash: tensor('i32', 'n') },
  attrs: { seed: int(0) },
  body:
    ({ key }, { seed }) =>
    (c) => {
      const k = wrappingMul(rotateLeft(wrappingMul(key(c), 0xcc9e2d51), 15), 0x1b873593)
      const mixed = wrappingAdd(wrappingMul(rotateLeft(seed ^ k, 13), 5), 0xe6546b64) ^ 4
      const a = wrappingMul(mixed ^ shiftRightUnsigned(mixed, 16), 0x85ebca6b)
      const b = wrappingMul(a ^ shiftRightUnsigned(a, 13), 0xc2b2ae35)
      return { hash: b ^ shiftRightUnsigned(b, 16) }
    },
})
// #endregion

/** A number in [0, 1) per element index: one step of PCG (RXS-M-XS, 32 bits). */
export const noise = op('noise', {
  dims: ['m', 'n'],
  inputs: { state: tensor('i32', 'm') },
  facts: { state: { from: -2147483648, to: 2147483647 } },
  outputs: { y: tensor('f32', 'm n') },
  body:
    ({ state }) =>
    (m, c) => {
      const s = wrappingAdd(wrappingMul(wrappingAdd(state(m), c), 747796405), 2891336453)
      const word = wrappingMul(shiftRightUnsigned(s, 4 + shiftRightUnsigned(s, 28)) ^ s, 277803737)
      return { y: shiftRightUnsigned(shiftRightUnsigned(word, 22) ^ word, 8) * 2 ** -24 }
    },
})
