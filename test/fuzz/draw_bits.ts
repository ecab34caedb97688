/** Bits of floats: integers from a loaded float, and floats from its bits. */
import { call, type Expr, whole } from './describe.js'
import type { Random } from './random.js'

const bits = (loaded: Expr): Expr => call('i32', 'bitsOf', loaded)

/** The sign, the exponent, or some of the mantissa. */
export function bitsOfLoad(random: Random, loaded: Expr): Expr {
  switch (random.below(4)) {
    case 0:
      return call('i32', 'bitAnd', call('i32', 'shiftRight', bits(loaded), whole(23)), whole(255))
    case 1:
      return call('i32', 'shiftRightUnsigned', bits(loaded), whole(random.between(16, 31)))
    case 2:
      return call('i32', 'shiftRight', bits(loaded), whole(random.between(20, 31)))
    default:
      return call('i32', 'bitAnd', call('i32', 'shiftRight', bits(loaded), whole(random.between(0, 20))), whole(1023))
  }
}

/** A float with less of its mantissa, without its sign, or with the opposite sign. */
export function cutFloat(random: Random, loaded: Expr): Expr {
  const word =
    random.below(4) === 0
      ? call('i32', 'bitXor', bits(loaded), whole(-(2 ** 31)))
      : call('i32', 'bitAnd', bits(loaded), whole(random.pick([-(2 ** 23), -(2 ** 16), -(2 ** 12), 2 ** 31 - 1])))
  return call('f32', 'floatOfBits', word)
}
