/** Conversions between host arrays and storage bytes, against @petamoriken/float16 and exact arithmetic. */
import { getFloat16, setFloat16 } from '@petamoriken/float16'
import { describe, expect, it } from 'vitest'
import { decode, encode } from '../../src/runtime/buffer.js'

const scratch = new Float32Array(1)
const scratchBits = new Uint32Array(scratch.buffer)
const floatOf = (bits: number): number => {
  scratchBits[0] = bits
  return scratch[0] ?? 0
}
const bitsOf = (value: number): number => {
  scratch[0] = value
  return scratchBits[0] ?? 0
}
const halves = (bytes: Uint8Array): number[] => [...new Uint16Array(bytes.slice().buffer)]
const isNaN16 = (half: number, infinity: number): boolean => (half & 0x7fff) > infinity

/** Float32 values that matter to a 16-bit rounding: around every 16-bit value and every tie, both signs, and a spread of others. */
function hardFloats(widen: (half: number) => number): Float32Array {
  const bits: number[] = []
  for (let half = 0; half < 0x10000; half++) {
    const at = bitsOf(widen(half))
    const next = bitsOf(widen((half & 0x8000) | Math.min((half & 0x7fff) + 1, 0x7fff)))
    const tie = bitsOf((floatOf(at) + floatOf(next)) / 2)
    for (const center of [at, tie]) bits.push(center - 1, center, center + 1)
  }
  for (let i = 0, state = 1; i < 50_000; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    bits.push(state)
  }
  return new Float32Array(Uint32Array.from(bits, (value) => value >>> 0).buffer)
}

const view = new DataView(new ArrayBuffer(2))
const f16 = {
  infinity: 0x7c00,
  widen(half: number): number {
    view.setUint16(0, half)
    return getFloat16(view, 0)
  },
  round(value: number): number {
    setFloat16(view, 0, value)
    return view.getUint16(0)
  },
}
const bf16 = {
  infinity: 0x7f80,
  widen: (half: number): number => floatOf(half << 16),
  /** The nearer of the two neighbours, compared in double arithmetic; the even one of a tie. */
  round(value: number): number {
    const bits = bitsOf(value)
    const below = bits >>> 16
    if (!Number.isFinite(value)) return below
    const above = below + 1
    const exact = (half: number): number =>
      isNaN16(half, bf16.infinity) || (half & 0x7fff) === bf16.infinity ? 2 ** 128 : Math.abs(bf16.widen(half))
    const down = Math.abs(value) - exact(below)
    const up = exact(above) - Math.abs(value)
    return down < up || (down === up && (below & 1) === 0) ? below : above
  },
}

describe.each([
  ['f16', f16],
  ['bf16', bf16],
] as const)('%s', (dtype, reference) => {
  it('widens every value exactly', () => {
    const all = Uint16Array.from({ length: 0x10000 }, (_, half) => half)
    const widened = decode(dtype, new Uint8Array(all.buffer))
    expect(all.every((half) => Object.is(widened[half], reference.widen(half)) || Number.isNaN(widened[half]))).toBe(true)
    expect(all.filter((half) => Number.isNaN(widened[half])).every((half) => isNaN16(half, reference.infinity))).toBe(true)
  })

  const values = hardFloats(reference.widen)
  const firstWrong = (rounded: readonly number[]): number =>
    rounded.findIndex((half, i) => {
      const value = values[i] ?? 0
      return Number.isNaN(value) ? !isNaN16(half, reference.infinity) : half !== reference.round(value)
    })

  it('rounds to nearest even', () => {
    expect(firstWrong(halves(encode(dtype, values)))).toBe(-1)
  })

  it('is distinguished from rounding down and from ties away', () => {
    const nudged = (by: number) => {
      const bits = new Uint32Array(values.slice().buffer).map((value) => value + by)
      return halves(encode(dtype, new Float32Array(bits.buffer)))
    }
    expect(firstWrong(nudged(1))).toBeGreaterThanOrEqual(0)
    expect(firstWrong(nudged(-1))).toBeGreaterThanOrEqual(0)
  })
})

it('shares memory if the host stores the same bytes', () => {
  const values = Int32Array.of(1, -2)
  expect(encode('i32', values).buffer).toBe(values.buffer)
  expect(decode('i32', encode('i32', values))).toEqual(values)
  expect(decode('i8', encode('i8', Int8Array.of(-127)))).toEqual(Int8Array.of(-127))
  expect(decode('u8', encode('u8', Uint8Array.of(255)))).toEqual(Uint8Array.of(255))
})

it('reads bytes at any offset', () => {
  const bytes = new Uint8Array(9)
  bytes.set(encode('f32', Float32Array.of(1.5, -2)), 1)
  expect(decode('f32', bytes.subarray(1))).toEqual(Float32Array.of(1.5, -2))
})

it('refuses the wrong array and broken elements', () => {
  const wrong: unknown = [1, 2]
  expect(() => encode('f16', wrong as Float32Array)).toThrow(/f16 values: expected a Float32Array, got \[object Array\]/)
  expect(() => decode('f16', new Uint8Array(3))).toThrow(/3 bytes are not whole f16 elements of 2 bytes/)
})
