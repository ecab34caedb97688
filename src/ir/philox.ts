/**
 * Counter-based random numbers: Philox 4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
 * A block of four words is a function of a counter and a key alone, so that a draw does not depend on earlier or concurrent draws.
 * Defines `uniform`; native/device/random.cuh computes the same bits.
 */

type Words4 = readonly [number, number, number, number]

const multipliers = [0xd2511f53, 0xcd9e8d57] as const
const keySteps = [0x9e3779b9, 0xbb67ae85] as const
const rounds = 10

/** High and low 32 bits of a product of unsigned 32-bit integers. */
function product(a: number, b: number): { readonly high: number; readonly low: number } {
  const whole = BigInt(a >>> 0) * BigInt(b >>> 0)
  return { high: Number(whole >> 32n), low: Number(whole & 0xffffffffn) }
}

/** The four words, unsigned, of a counter under a key. Signed and unsigned words stand for the same bits. */
export function philox(counter: Words4, key: readonly [number, number]): Words4 {
  let [a, b, c, d] = counter
  let [low, high] = key
  for (let round = 0; round < rounds; round++) {
    const first = product(multipliers[0], a)
    const second = product(multipliers[1], c)
    a = (second.high ^ b ^ low) >>> 0
    b = second.low
    c = (first.high ^ d ^ high) >>> 0
    d = first.low
    low = (low + keySteps[0]) | 0
    high = (high + keySteps[1]) | 0
  }
  return [a, b, c, d]
}

/**
 * A float32 strictly between 0 and 1: the midpoint of one of 2^23 equal intervals. With one more bit, the last one would round to 1.
 */
export const uniform = (seedLow: number, seedHigh: number, counter: number): number =>
  ((philox([counter, 0, 0, 0], [seedLow, seedHigh])[0] >>> 9) + 0.5) * 2 ** -23
