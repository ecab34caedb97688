/** The matmul of the `js` device: strides, batches, types and epilogues, and elements that it must leave alone. */
import { expect, it } from 'vitest'
import { abiType, type DType } from '../../../src/ir/dtype.js'
import { decode } from '../../../src/runtime/buffer.js'
import { multiply } from '../../../src/runtime/js/matmul.js'
import type { NativeBuffer, NativeMatmul, NativeSlice } from '../../../src/runtime/native.js'
import { encodeNumbers } from '../../../src/runtime/numbers.js'

interface Given {
  readonly types: readonly [DType, DType, DType]
  readonly extents: NativeMatmul['extents']
  readonly strides: NativeMatmul['strides']
  readonly a: readonly number[]
  readonly b: readonly number[]
  readonly out: readonly number[]
  readonly bias?: readonly number[]
  readonly residual?: readonly number[]
  readonly relu?: boolean
}

/** The elements of `out` after the matmul. */
function run({ types, extents, strides, a, b, out, bias, residual, relu = false }: Given): number[] {
  const held = new Map<NativeBuffer, Uint8Array>()
  const slice = (dtype: DType, values: readonly number[]): NativeSlice => {
    const bytes = encodeNumbers(dtype, values)
    const buffer: NativeBuffer = {
      bytes: bytes.byteLength,
      write: async () => undefined,
      read: async () => bytes,
      release: () => undefined,
    }
    held.set(buffer, bytes)
    return { buffer, offset: 0, bytes: bytes.byteLength }
  }
  const [ta, tb, to] = types
  const target = slice(to, out)
  const step: NativeMatmul = {
    ...{ kind: 'matmul', label: 'product', allowTf32: false, extents, strides },
    ...{ a: slice(ta, a), b: slice(tb, b), out: target, dtypes: [abiType(ta), abiType(tb), abiType(to)] },
    epilogue: {
      relu,
      ...(bias === undefined ? {} : { bias: slice(to, bias) }),
      ...(residual === undefined ? {} : { residual: slice(to, residual) }),
    },
  }
  multiply(step, ({ buffer }) => held.get(buffer) ?? new Uint8Array())
  return Array.from(decode(to, held.get(target.buffer) ?? new Uint8Array()))
}

/** Two rows of two by two columns of two: 1 2 / 3 4 times 5 6 / 7 8, transposed. */
const plain: Given = {
  types: ['f32', 'f32', 'f32'],
  extents: [1, 2, 2, 2],
  strides: [
    [0, 2, 1],
    [0, 2, 1],
    [0, 2, 1],
  ],
  a: [1, 2, 3, 4],
  b: [5, 6, 7, 8],
  out: [0, 0, 0, 0],
}

it('multiplies rows of a by rows of b', () => expect(run(plain)).toEqual([17, 23, 39, 53]))

it('adds a bias by column and a residual by element, then clips', () =>
  expect(run({ ...plain, bias: [1, -100], residual: [0, 0, 0, 200], relu: true })).toEqual([18, 0, 40, 153]))

it('stores by strides, and leaves the elements between them', () => {
  const strides: NativeMatmul['strides'] = [plain.strides[0], plain.strides[1], [0, 3, 1]]
  expect(run({ ...plain, strides, out: [0, 0, 7, 0, 0, 7] })).toEqual([17, 23, 7, 39, 53, 7])
})

it('multiplies each entry of a batch, by a matrix that all share', () => {
  const strides: NativeMatmul['strides'] = [
    [2, 2, 1],
    [0, 2, 1],
    [2, 2, 1],
  ]
  expect(run({ ...plain, extents: [2, 1, 2, 2], strides })).toEqual([17, 23, 39, 53])
})

it('sums int8 exactly in int32', () =>
  expect(run({ ...plain, types: ['i8', 'i8', 'i32'], a: [127, 127, -127, 1], b: [127, 127, 1, 2] })).toEqual([
    32_258, 381, -16_002, -125,
  ]))

it('rounds once to the type of the result', () =>
  // 2048 + 1 + 1: float16 has steps of two there, so that sums in float16 would stay at 2048.
  expect(run({ ...plain, types: ['f16', 'f16', 'f16'], extents: [1, 1, 1, 3], a: [2048, 1, 1], b: [1, 1, 1], out: [0] })).toEqual(
    [2050],
  ))

it('has sums of nothing', () =>
  expect(run({ ...plain, extents: [1, 2, 2, 0], a: [], b: [], bias: [1, 2] })).toEqual([1, 2, 1, 2]))
