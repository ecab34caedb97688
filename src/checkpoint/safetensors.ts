/**
 * Reads and writes safetensors files: an 8-byte little-endian header length, a JSON header, the tensors' bytes. Opening a file reads its header
 * alone. A tensor's bytes are read by position on demand, so a file may be larger than memory.
 */
import { usageError } from '../errors.js'
import { type Refusal, readAt, withFile } from '../files.js'
import { type PieceSource, readPieces, versionOf } from './file_pieces.js'
import { type ElementType, type Header, headerLength, parseHeader, prefixBytes, type TensorEntry } from './safetensors_header.js'

/** A tensor in host memory. */
export interface StoredTensor {
  readonly dtype: ElementType
  readonly shape: readonly number[]
  readonly data: Uint8Array
}

export interface Safetensors {
  readonly tensors: ReadonlyMap<string, StoredTensor>
  readonly metadata: Readonly<Record<string, string>>
}

/** A tensor of a file. */
export interface FileTensor {
  readonly dtype: ElementType
  readonly shape: readonly number[]
  readonly bytes: number
  /** The file's own name of its type, if it differs from the type that is read. */
  readonly stored?: string
  /**
   * Its bytes in order, in chunks of whole elements. A chunk is valid until the next one is requested.
   * @throws usage `safetensors.read`, `safetensors.changed`; the signal's reason when it aborts
   */
  pieces(signal?: AbortSignal): AsyncGenerator<Uint8Array, void>
  /** Rows `from` to `to - 1` as a tensor. Only these rows are read from the file. */
  rows(from: number, to: number): FileTensor
}

export interface SafetensorsFile {
  readonly tensors: ReadonlyMap<string, FileTensor>
  readonly metadata: Readonly<Record<string, string>>
}

const refusal: Refusal = { code: 'safetensors.read' }

/**
 * Opens a file: reads and checks its header. No file stays open. A tensor's bytes come from the same version of the file, or reading fails.
 * @throws usage `safetensors.read` if it cannot be read or is not a regular file, `safetensors.header` if it is a pointer of Git LFS, and what
 * `parseSafetensors` throws
 */
export async function openSafetensors(path: string, signal?: AbortSignal): Promise<SafetensorsFile> {
  signal?.throwIfAborted()
  const { header, first, version } = await withFile(path, refusal, async (file, stats) => {
    const { size } = stats
    const prefix = new Uint8Array(Math.min(prefixBytes, size))
    await readAt(file, prefix, 0, path, refusal)
    if (isPointer(prefix)) {
      throw usageError('safetensors.header', `${path}: the file is a pointer of Git LFS, the tensors are not here`, {
        hint: 'fetch them with `git lfs pull` in the folder',
      })
    }
    const length = headerLength(prefix, size, path)
    const bytes = new Uint8Array(length)
    await readAt(file, bytes, prefixBytes, path, refusal)
    const first = prefixBytes + length
    return { header: parseHeader(bytes, size - first, path), first, version: versionOf(stats) }
  })
  const source = { path, version, first, refusal, changed: 'safetensors.changed' } as const
  const tensors = [...header.tensors].map(([name, entry]): [string, FileTensor] => [name, fileTensor(source, entry)])
  return { tensors: new Map(tensors), metadata: header.metadata }
}

/** True if a file begins like a Git LFS pointer. As a header length, these bytes exceed any header. */
const isPointer = (prefix: Uint8Array): boolean => new TextDecoder().decode(prefix) === 'version '

function fileTensor(source: PieceSource, entry: TensorEntry): FileTensor {
  const { dtype, shape, from, to } = entry
  const [rows = 1, ...rest] = shape
  const row = (to - from) / rows
  return {
    ...{ dtype, shape, bytes: to - from },
    pieces: (signal) => readPieces(source, from, to, signal),
    rows: (begin, end) =>
      fileTensor(source, { dtype, shape: [end - begin, ...rest], from: from + begin * row, to: from + end * row }),
  }
}

/** Reads a whole file into host memory. @throws what `openSafetensors` and its tensors throw */
export async function readSafetensors(path: string): Promise<Safetensors> {
  const { tensors, metadata } = await openSafetensors(path)
  const loaded = new Map<string, StoredTensor>()
  for (const [name, { dtype, shape, bytes, pieces }] of tensors) {
    const data = new Uint8Array(bytes)
    let at = 0
    for await (const piece of pieces()) {
      data.set(piece, at)
      at += piece.byteLength
    }
    loaded.set(name, { dtype, shape, data })
  }
  return { tensors: loaded, metadata }
}

/**
 * Parses the bytes of a file; `name` is used in messages. Tensor data are views of `bytes`.
 * @throws usage `safetensors.truncated`, `.header`, `.duplicate`, `.tensor`, `.dtype`, `.size`, `.offsets`
 */
export function parseSafetensors(bytes: Uint8Array, name: string): Safetensors {
  const length = headerLength(bytes.subarray(0, prefixBytes), bytes.byteLength, name)
  const body = bytes.subarray(prefixBytes + length)
  const header: Header = parseHeader(bytes.subarray(prefixBytes, prefixBytes + length), body.byteLength, name)
  const tensors = [...header.tensors].map(([tensor, { dtype, shape, from, to }]): [string, StoredTensor] => [
    tensor,
    { dtype, shape, data: body.subarray(from, to) },
  ])
  return { tensors: new Map(tensors), metadata: header.metadata }
}

/** Bytes of a file that holds the tensors in the given order. */
export function formatSafetensors(
  tensors: Iterable<readonly [string, StoredTensor]>,
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array {
  const header: [string, unknown][] = Object.keys(metadata).length > 0 ? [['__metadata__', metadata]] : []
  const parts: Uint8Array[] = []
  let end = 0
  for (const [name, { dtype, shape, data }] of tensors) {
    header.push([name, { dtype, shape, data_offsets: [end, end + data.byteLength] }])
    end += data.byteLength
    parts.push(data)
  }
  const json = JSON.stringify(Object.fromEntries(header))
  // Blanks after the header align the data to 8 bytes.
  const text = Buffer.from(json.padEnd(json.length + ((8 - (Buffer.byteLength(json) % 8)) % 8)))
  const prefix = Buffer.alloc(prefixBytes)
  prefix.writeBigUInt64LE(BigInt(text.byteLength))
  return new Uint8Array(Buffer.concat([prefix, text, ...parts]))
}
