/** The matmul of the `js` device: sums in double precision, rounded once when they are stored. */
import { type DType, dtypeInfo, dtypes } from '../../ir/dtype.js'
import { decode } from '../buffer.js'
import type { NativeMatmul, NativeSlice } from '../native.js'
import { encodeNumbers } from '../numbers.js'

type Extents = NativeMatmul['extents']
type Strides = readonly [number, number, number]

/** The elements of an operand that a matmul reaches, from its first to its last. */
function reached(bytes: Uint8Array, dtype: DType, extents: Strides, strides: Strides): Uint8Array {
  const last = extents.reduce((at, extent, axis) => at + (extent - 1) * (strides[axis] ?? 0), 0)
  return bytes.subarray(0, (last + 1) * dtypeInfo[dtype].bytes)
}

const dtypeAt = (index: number): DType => dtypes[index] ?? 'f32'

/** Computes `out = relu(a b + bias + residual)`, each part if it is given. */
export function multiply(step: NativeMatmul, bytesOf: (slice: NativeSlice) => Uint8Array): void {
  const { extents, strides, epilogue } = step
  const [batch, m, n, k] = extents
  if (batch * m * n === 0) return
  const [ta, tb, tout] = [dtypeAt(step.dtypes[0]), dtypeAt(step.dtypes[1]), dtypeAt(step.dtypes[2])]
  const [sa, sb, so] = strides
  // Nothing is read from operands without elements.
  const a = k === 0 ? [] : decode(ta, reached(bytesOf(step.a), ta, [batch, m, k], sa))
  const b = k === 0 ? [] : decode(tb, reached(bytesOf(step.b), tb, [batch, n, k], sb))
  const target = reached(bytesOf(step.out), tout, [batch, m, n], so)
  const out = Float64Array.from(decode(tout, target))
  const bias = epilogue?.bias === undefined ? undefined : decode(tout, bytesOf(epilogue.bias))
  const residual =
    epilogue?.residual === undefined ? undefined : decode(tout, reached(bytesOf(epilogue.residual), tout, [batch, m, n], so))
  forEachSum(extents, strides, a, b, (sum, at, column) => {
    const added = sum + (bias?.[column] ?? 0) + (residual?.[at] ?? 0)
    out[at] = epilogue?.relu === true && added < 0 ? 0 : added
  })
  target.set(encodeNumbers(tout, out))
}

/** Calls `give` with each sum, its place in the result, and its column. */
function forEachSum(
  [batch, m, n, k]: Extents,
  [sa, sb, so]: NativeMatmul['strides'],
  a: ArrayLike<number>,
  b: ArrayLike<number>,
  give: (sum: number, at: number, column: number) => void,
): void {
  for (let p = 0; p < batch; p++) {
    for (let i = 0; i < m; i++) {
      const fromA = p * sa[0] + i * sa[1]
      for (let j = 0; j < n; j++) {
        const fromB = p * sb[0] + j * sb[1]
        let sum = 0
        for (let l = 0; l < k; l++) sum += (a[fromA + l * sa[2]] ?? Number.NaN) * (b[fromB + l * sb[2]] ?? Number.NaN)
        give(sum, p * so[0] + i * so[1] + j * so[2], j)
      }
    }
  }
}
