/** Memory and values of a library matmul, in `sets` copies to defeat the device's cache. */
import { type DType, dtypeInfo, dtypes } from '../../ir/dtype.js'
import { decode } from '../../runtime/buffer.js'
import type { NativeBuffer, NativeDevice, NativeMatmul, NativeSlice } from '../../runtime/native.js'
import { encodeNumbers } from '../../runtime/numbers.js'
import { arenaAlignment } from '../../runtime/planner.js'
import { poisonByte } from '../../verify/block.js'
import { integer, normal, random } from '../../verify/random.js'

/** Number of random values; a larger operand repeats them. */
const drawn = 1 << 14
/** Largest int8 magnitude: values cover the whole range. */
const widest = 127

const roles = ['a', 'b', 'out', 'bias', 'residual'] as const
type Role = (typeof roles)[number]

interface Place {
  readonly role: Role
  readonly dtype: DType
  readonly offset: number
  readonly bytes: number
}

/** Elements from the first to the last one of an operand. */
const span = (extents: readonly number[], strides: readonly number[]): number =>
  extents.reduce((last, extent, i) => last + (extent - 1) * (strides[i] ?? 0), 1)

function placesOf({ dtypes: types, extents: [batch, m, n, k], strides: [a, b, out], epilogue }: NativeMatmul): Place[] {
  const [typeA, typeB, typeOut] = types.map((type) => dtypes[type] ?? 'f32')
  const result = span([batch, m, n], out)
  const elements: Readonly<Record<Role, number>> = {
    a: span([batch, m, k], a),
    b: span([batch, n, k], b),
    out: result,
    bias: epilogue?.bias === undefined ? 0 : n,
    residual: epilogue?.residual === undefined ? 0 : result,
  }
  let end = 0
  return roles.flatMap((role): Place[] => {
    if (elements[role] === 0) return []
    const dtype = (role === 'a' ? typeA : role === 'b' ? typeB : typeOut) ?? 'f32'
    const bytes = elements[role] * dtypeInfo[dtype].bytes
    const offset = end
    end = Math.ceil((offset + bytes) / arenaAlignment) * arenaAlignment
    return [{ role, dtype, offset, bytes }]
  })
}

/** Bytes that a matmul reads and writes, with one access per operand. */
export const operandBytes = (matmul: NativeMatmul): number => placesOf(matmul).reduce((sum, { bytes }) => sum + bytes, 0)

function initial(places: readonly Place[], name: string): Uint8Array {
  const last = places.at(-1)
  const block = new Uint8Array(last === undefined ? 0 : last.offset + last.bytes)
  for (const { role, dtype, offset, bytes } of places) {
    const target = block.subarray(offset, offset + bytes)
    if (role === 'out') {
      target.fill(poisonByte(dtype))
      continue
    }
    const next = random(`library ${name} ${role}`)
    const value = dtype === 'i8' ? () => integer(next, -widest, widest) : () => normal(next)
    const count = Math.min(bytes / dtypeInfo[dtype].bytes, drawn)
    const pattern = encodeNumbers(dtype, Float64Array.from({ length: count }, value))
    for (let at = 0; at < bytes; at += pattern.byteLength) target.set(pattern.subarray(0, bytes - at), at)
  }
  return block
}

/** A matmul with its own memory. */
export interface Operands {
  /** Steps of the matmul for every set; by default with the library's first algorithm. */
  steps(algorithm?: Uint8Array): NativeMatmul[]
  readonly out: { readonly dtype: DType; readonly slice: NativeSlice }
  /** The largest magnitude of the bias; 0 without one. */
  readonly bias: number
  /** First set before any run. */
  readonly initial: { readonly to: NativeSlice; readonly data: Uint8Array }
  release(): void
}

/** @throws environment `device.memory` */
export async function openOperands(device: NativeDevice, matmul: NativeMatmul, sets: number): Promise<Operands> {
  const places = placesOf(matmul)
  const data = initial(places, matmul.label)
  const buffers: NativeBuffer[] = []
  const release = (): void => {
    for (const buffer of buffers) buffer.release()
  }
  try {
    for (let set = 0; set < sets; set++) {
      const buffer = device.allocate(data.byteLength)
      buffers.push(buffer)
      await buffer.write(0, data)
    }
    const [first] = buffers
    const result = places.find(({ role }) => role === 'out')
    if (first === undefined || result === undefined) throw new Error('internal: a matmul has a result')
    const placed = ({ offset, bytes }: Place, buffer: NativeBuffer): NativeSlice => ({ buffer, offset, bytes })
    return {
      steps: (algorithm) => buffers.map((buffer) => stepIn(matmul, places, buffer, algorithm)),
      out: { dtype: result.dtype, slice: placed(result, first) },
      bias: largest(
        places.find(({ role }) => role === 'bias'),
        data,
      ),
      initial: { to: { buffer: first, offset: 0, bytes: data.byteLength }, data },
      release,
    }
  } catch (error) {
    release()
    throw error
  }
}

const largest = (place: Place | undefined, data: Uint8Array): number =>
  place === undefined
    ? 0
    : Float64Array.from(decode(place.dtype, data.slice(place.offset, place.offset + place.bytes))).reduce(
        (most, value) => Math.max(most, Math.abs(value)),
        0,
      )

function stepIn(
  matmul: NativeMatmul,
  places: readonly Place[],
  buffer: NativeBuffer,
  algorithm: Uint8Array | undefined,
): NativeMatmul {
  const slice = (role: Role): NativeSlice | undefined => {
    const place = places.find((each) => each.role === role)
    return place === undefined ? undefined : { buffer, offset: place.offset, bytes: place.bytes }
  }
  const [a, b, out, bias, residual] = roles.map(slice)
  if (a === undefined || b === undefined || out === undefined) throw new Error('internal: a matmul has two operands and a result')
  const { epilogue, algorithm: _, ...rest } = matmul
  const relu = epilogue?.relu ?? false
  const added = { ...(bias === undefined ? {} : { bias }), ...(residual === undefined ? {} : { residual }), relu }
  return {
    ...rest,
    ...{ a, b, out },
    ...(epilogue === undefined ? {} : { epilogue: added }),
    ...(algorithm === undefined ? {} : { algorithm }),
  }
}
