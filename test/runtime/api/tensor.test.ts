import { expect, test } from 'vitest'
import { bf16, f8e4m3, f8e5m2, f16, type Tensor, tensor, toNumbers, zeros } from '../../../src/runtime/api/index.js'

test('numbers become elements of the type, and come back', () => {
  expect(tensor('f32', [2], [1.5, -2])).toEqual({ dtype: 'f32', shape: [2], data: Float32Array.of(1.5, -2) })
  expect([...toNumbers(tensor('f16', [3], [1, 0.1, 70000]))]).toEqual([1, 0.0999755859375, Number.POSITIVE_INFINITY])
  expect([...toNumbers(tensor('bf16', [2], [1, 0.1]))]).toEqual([1, 0.10009765625])
  expect([...toNumbers(tensor('i8', [3], [-128, 0, 127]))]).toEqual([-128, 0, 127])
  expect(tensor('f32', [], [4]).shape).toEqual([])
  expect(zeros('i32', [2, 3]).data).toEqual(new Int32Array(6))
  expect(tensor('f32', [0, 3], []).data).toHaveLength(0)
})

test('an array of the type’s own kind is used directly, with bits for 16-bit floats', () => {
  const data = Float32Array.of(1, 2)
  expect(tensor('f32', [2], data).data).toBe(data)
  const bits = f16.from([1, 2])
  expect(tensor('f16', [2], bits).data).toBe(bits)
  expect([...bits]).toEqual([0x3c00, 0x4000])
  expect([...bf16.from([1, -2])]).toEqual([0x3f80, 0xc000])
})

test('conditions are bytes of 0 and 1', () => {
  const on = tensor('bool', [3], [true, false, true])
  expect(on.data).toEqual(Uint8Array.of(1, 0, 1))
  expect(tensor('bool', [3], [1, 0, 1])).toEqual(on)
  expect([...toNumbers(on)]).toEqual([1, 0, 1])
  expect(() => tensor('bool', [1], [2])).toThrow('element 0: expected an integer in [0, 1] for bool, got 2')
})

/** The nearest of all numbers of the type, ties to the even one, found by looking at all. */
function nearest(type: typeof f16, x: number, infinite: number): number {
  const all = [...type.toNumbers(Uint16Array.from({ length: infinite + 1 }, (_, bits) => bits))]
  // The first number that does not fit counts as infinite.
  const last = all[infinite - 1] ?? 0
  all[infinite] = 2 * last - (all[infinite - 2] ?? 0)
  const best = all.reduce((found, value, bits) => {
    const [now, before] = [Math.abs(value - Math.abs(x)), Math.abs((all[found] ?? 0) - Math.abs(x))]
    return now < before || (now === before && bits % 2 === 0) ? bits : found
  }, 0)
  return best | (x < 0 || Object.is(x, -0) ? 0x8000 : 0)
}

test('doubles are rounded to 16 bits once', () => {
  const tie = 1 + 2 ** -11
  const cases = [
    tie,
    tie + 2 ** -40,
    tie - 2 ** -40,
    2 ** -25,
    2 ** -25 * (1 + 2 ** -30),
    -(2 ** -24) * 1.5,
    65519.999999,
    65520,
    0.1,
    -1 / 3,
    1e-9,
  ]
  for (const x of cases) expect([x, f16.from([x])[0]]).toEqual([x, nearest(f16, x, 0x7c00)])
  const upper = 1 + 2 ** -8
  const wide = [upper, upper + 2 ** -45, upper - 2 ** -45, 3.3895313892515355e38, 1e-40, -1e-41 * 1.7, Math.PI]
  for (const x of wide) expect([x, bf16.from([x])[0]]).toEqual([x, nearest(bf16, x, 0x7f80)])
  // Rounded through float32 alone, this one would be a tie and go down to 1.
  expect(f16.from([tie + 2 ** -40])[0]).not.toBe(f16.from(Float32Array.of(tie + 2 ** -40))[0])
})

test('every 16-bit number survives the way there and back', () => {
  for (const type of [f16, bf16]) {
    const bits = Uint16Array.from({ length: 2 ** 16 }, (_, i) => i)
    const back = type.from(Array.from(type.toNumbers(bits)))
    const wrong = [...bits].filter((value) => back[value] !== value && !Number.isNaN(type.toNumbers(Uint16Array.of(value))[0]))
    expect(wrong).toEqual([])
  }
})

test('numbers become 8-bit floats that are nearest, and every code comes back', () => {
  for (const [type, largest, isNumber] of [
    [f8e4m3, 448, (code: number) => (code & 0x7f) !== 0x7f],
    [f8e5m2, 57_344, (code: number) => (code & 0x7f) < 0x7c],
  ] as const) {
    const codes = Uint8Array.from({ length: 256 }, (_, code) => code)
    const numbers = codes.filter(isNumber)
    const values = type.toNumbers(numbers)
    expect(Math.max(...values)).toBe(largest)
    expect(type.from(values)).toEqual(numbers)
    expect([...type.toNumbers(codes.filter((code) => !isNumber(code)))].filter(Number.isFinite)).toEqual([])
    const nearestCode = (x: number): number =>
      numbers.reduce((best, code) => {
        const distance = (each: number): number => Math.abs(at(type.toNumbers(Uint8Array.of(each)), 0) - x)
        const isEven = code % 2 === 0 && (code & 0x80) === (x < 0 ? 0x80 : 0)
        return distance(code) < distance(best) || (distance(code) === distance(best) && isEven) ? code : best
      }, 0)
    // Between two neighbours: values nearer to either, the middle, and values that only float32 arithmetic would round to the middle.
    const upper = [...values.filter((value) => value >= 0)]
    const between = upper.slice(1).flatMap((value, i) => {
      const middle = (value + at(upper, i)) / 2
      return [middle, middle * (1 + 2 ** -40), middle * (1 - 2 ** -40), -middle]
    })
    expect(Array.from(type.from(between))).toEqual(between.map(nearestCode))
    expect(Array.from(type.from([largest * 2, Number.POSITIVE_INFINITY, -1e30, Number.NaN]))).toEqual(
      [largest, largest, -largest].map(nearestCode).concat(0x7f),
    )
  }
  // e5m2 is binary16 without its lower byte.
  expect([...f8e5m2.toNumbers(Uint8Array.of(0x7c, 0x01, 0x3c))]).toEqual([
    ...f16.toNumbers(Uint16Array.of(0x7c00, 0x0100, 0x3c00)),
  ])
})

test('integers of 16, 32 and 64 bits', () => {
  expect(tensor('i64', [2], [5, -3]).data).toEqual(BigInt64Array.of(5n, -3n))
  const wide = tensor('i64', [2], BigInt64Array.of(2n ** 53n + 1n, 1n))
  expect(wide.data[0]).toBe(2n ** 53n + 1n)
  expect(() => toNumbers(wide)).toThrow('element 0 is 9007199254740993')
  expect([...toNumbers(tensor('i64', [2], [2 ** 53 - 1, -1]))]).toEqual([2 ** 53 - 1, -1])
  expect(tensor('u32', [1], [2 ** 32 - 1]).data).toEqual(Uint32Array.of(2 ** 32 - 1))
  expect([...toNumbers(tensor('i16', [2], [-32_768, 32_767]))]).toEqual([-32_768, 32_767])
})

const at = (values: ArrayLike<number>, i: number): number => values[i] ?? Number.NaN

const refusals: readonly (readonly [string, () => unknown, string, RegExp])[] = [
  ['a type that is none', () => tensor('float32' as 'f32', [1], [1]), 'tensor.dtype', /expected a storage type, got "float32"/],
  ['too few values', () => tensor('f32', [2, 3], [1]), 'tensor.data', /f32 \[2, 3\]: expected 6 elements, got 1/],
  ['no values', () => tensor('f32', [1], 7 as never), 'tensor.data', /array of numbers, got a number/],
  ['a negative extent', () => tensor('f32', [-1], []), 'tensor.shape', /\[-1\] is not a shape/],
  ['half an element', () => tensor('f32', [0.5], []), 'tensor.shape', /\[0.5\]/],
  ['a product beyond numbers', () => zeros('i8', [2 ** 40, 2 ** 40]), 'tensor.shape', /not a shape/],
  ['no list of extents', () => zeros('i8', 4 as never), 'tensor.shape', /list of extents as the shape, got a number/],
  [
    'a fraction in integers',
    () => tensor('i32', [2], [1, 1.5]),
    'tensor.value',
    /element 1: expected an integer in .* for i32, got 1.5/,
  ],
  ['more than a byte', () => tensor('u8', [1], [256]), 'tensor.value', /in \[0, 255\]/],
  ['less than nothing', () => tensor('u32', [1], [-1]), 'tensor.value', /in \[0, 4294967295\]/],
  ['more than 16 bits', () => tensor('i16', [1], [32_768]), 'tensor.value', /in \[-32768, 32767\]/],
  ['more than a number says', () => tensor('i64', [1], [2 ** 53]), 'tensor.value', /, 9007199254740991\]/],
  [
    'bigints in another type',
    () => tensor('i32', [1], BigInt64Array.of(1n) as never),
    'tensor.data',
    /cannot be converted from a BigInt64Array/,
  ],
  ['NaN in integers', () => tensor('i8', [1], [Number.NaN]), 'tensor.value', /NaN/],
  [
    'data of another kind',
    () => toNumbers({ dtype: 'f16', shape: [1], data: Float32Array.of(1) } as never),
    'tensor.data',
    /Uint16Array as the data of f16, got a Float32Array/,
  ],
  ['a value that is not a tensor', () => toNumbers([1, 2] as never), 'tensor.tensor', /expected a tensor, got an Array/],
]

test.each(refusals)('%s is refused', (_, make, code, message) => {
  expect(make).toThrow(
    expect.objectContaining({ name: 'HeddleError', class: 'usage', code, message: expect.stringMatching(message) }),
  )
})

test('an element may be any tensor if its type is unknown', () => {
  const any: Tensor = tensor('u8', [1], [3])
  expect(any.dtype === 'u8' && any.data[0]).toBe(3)
})
