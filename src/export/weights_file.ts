/** Writes prepared weights next to an export, in chunks: host memory never holds all of them. */
import { open } from 'node:fs/promises'
import { usageError } from '../errors.js'
import { type DType, dtypeInfo } from '../ir/dtype.js'
import { piecesOf, type Weight, weightBytes } from '../runtime/weight.js'

const elementTypes: Readonly<Record<DType, string>> = {
  f32: 'F32',
  f16: 'F16',
  bf16: 'BF16',
  i32: 'I32',
  i8: 'I8',
  u8: 'U8',
  f8e4m3: 'F8_E4M3',
  f8e5m2: 'F8_E5M2',
  i16: 'I16',
  u32: 'U32',
  i64: 'I64',
  // As bytes: readers in C++ and C have no boolean type.
  bool: 'U8',
}

/** A tensor of a safetensors file, without its bytes. F64 is used for expected values; no kernel stores it. */
export interface FileTensor {
  readonly dtype: DType | 'f64'
  readonly shape: readonly number[]
  readonly bytes: number
}

/** Header of a safetensors file. The tensors' bytes follow, in the same order. */
export function safetensorsHeader(tensors: readonly (readonly [name: string, tensor: FileTensor])[]): Uint8Array {
  let end = 0
  const header = tensors.map(([name, { dtype, shape, bytes }]) => {
    const from = end
    end += bytes
    return [name, { dtype: dtype === 'f64' ? 'F64' : elementTypes[dtype], shape, data_offsets: [from, end] }] as const
  })
  const json = JSON.stringify(Object.fromEntries(header))
  // Blanks after the header align the data to 8 bytes.
  const text = Buffer.from(json.padEnd(json.length + ((8 - (Buffer.byteLength(json) % 8)) % 8)))
  const prefix = Buffer.alloc(8)
  prefix.writeBigUInt64LE(BigInt(text.byteLength))
  return Buffer.concat([prefix, text])
}

/** Stored shape of a weight: its own, or the number of its elements if its layout pads. */
export function storedShape({ dtype, shape, bytes }: Omit<FileTensor, 'dtype'> & { readonly dtype: DType }): readonly number[] {
  const element = dtypeInfo[dtype].bytes
  return shape.reduce((product, extent) => product * extent, element) === bytes ? shape : [bytes / element]
}

/** @throws usage `export.write`; what reading a weight throws; the signal's reason when it aborts */
export async function writeWeights(path: string, weights: Readonly<Record<string, Weight>>, signal?: AbortSignal): Promise<void> {
  const header = safetensorsHeader(
    Object.entries(weights).map(([name, weight]) => {
      const { dtype, shape } = weight
      const bytes = weightBytes(weight)
      return [name, { dtype, shape: storedShape({ dtype, shape, bytes }), bytes }]
    }),
  )
  const file = await open(path, 'w').catch((cause: unknown) => {
    throw usageError('export.write', `cannot write ${path}`, { cause })
  })
  try {
    await file.writeFile(header)
    for (const weight of Object.values(weights)) {
      for await (const piece of piecesOf(weight, signal)) {
        signal?.throwIfAborted()
        await file.writeFile(piece)
      }
    }
  } finally {
    await file.close()
  }
}
