/**
 * GGUF files: one file with metadata and tensors. A file is opened by its header alone; bytes of tensors are read by their position when
 * they are asked for. Blocks of Q8_0, 32 integers with one step, are float32 here: the product of both is exact in it.
 */
import { usageError } from '../errors.js'
import { type Refusal, readAt, withFile } from '../files.js'
import { decode } from '../runtime/buffer.js'
import { type PieceSource, readPieces, versionOf } from './file_pieces.js'
import { type GgufHeader, type GgufTensor, type GgufValue, HeaderTooShort, parseGgufHeader } from './gguf_header.js'
import type { FileTensor } from './safetensors.js'

export interface Gguf {
  readonly metadata: ReadonlyMap<string, GgufValue>
  readonly tensors: ReadonlyMap<string, FileTensor>
}

const refusal: Refusal = { code: 'gguf.read', hint: 'a GGUF model is one file that ends in .gguf' }

/** Headers of models with large vocabularies have some ten megabytes. */
const firstBytes = 2 ** 20
const mostHeader = 2 ** 27

/**
 * Opens a file: reads and checks its header. No file stays open.
 * @throws usage `gguf.*`; the signal's reason when it aborts
 */
export async function openGguf(path: string, signal?: AbortSignal): Promise<Gguf> {
  signal?.throwIfAborted()
  const { header, version } = await withFile(path, refusal, async (file, stats) => {
    const { size } = stats
    for (let length = Math.min(firstBytes, size); ; length = Math.min(2 * length, size, mostHeader)) {
      signal?.throwIfAborted()
      const bytes = new Uint8Array(length)
      await readAt(file, bytes, 0, path, refusal)
      const header = tryParse(bytes, size, path)
      if (header !== undefined) return { header, version: versionOf(stats) }
      if (length === mostHeader) throw usageError('gguf.header', `${path}: the header has more than ${mostHeader} bytes`)
    }
  })
  const source = { path, version, first: header.first, refusal, changed: 'gguf.changed' } as const
  const tensors = [...header.tensors].map(([name, tensor]): [string, FileTensor] => [name, fileTensor(source, tensor)])
  return { metadata: header.metadata, tensors: new Map(tensors) }
}

/** Undefined where more of the file is needed. */
function tryParse(bytes: Uint8Array, fileBytes: number, path: string): GgufHeader | undefined {
  try {
    return parseGgufHeader(bytes, fileBytes, path)
  } catch (error) {
    if (error instanceof HeaderTooShort) return undefined
    throw error
  }
}

function fileTensor(source: PieceSource, tensor: GgufTensor): FileTensor {
  const { type, shape, from, to } = tensor
  const [count = 1, ...rest] = shape
  const row = (to - from) / count
  const values = shape.reduce((product, extent) => product * extent, 1)
  const rows = (begin: number, end: number): FileTensor =>
    fileTensor(source, { type, shape: [end - begin, ...rest], from: from + begin * row, to: from + end * row })
  if (type !== 'Q8_0')
    return { dtype: type, shape, bytes: to - from, pieces: (signal) => readPieces(source, from, to, signal), rows }
  return {
    ...{ dtype: 'F32', stored: type, shape, bytes: values * Float32Array.BYTES_PER_ELEMENT, rows },
    async *pieces(signal) {
      for await (const piece of readPieces(source, from, to, signal, pieceBlocks * blockBytes)) yield fromBlocks(piece)
    },
  }
}

const blockValues = 32
/** A step in float16, and the integers. */
const blockBytes = 2 + blockValues
/** Blocks that are read at once: four times their bytes are made of them. */
const pieceBlocks = 2 ** 16

function fromBlocks(bytes: Uint8Array): Uint8Array {
  const blocks = bytes.byteLength / blockBytes
  const halves = new Uint8Array(2 * blocks)
  for (let block = 0; block < blocks; block++) {
    halves[2 * block] = bytes[block * blockBytes] ?? 0
    halves[2 * block + 1] = bytes[block * blockBytes + 1] ?? 0
  }
  const steps = decode('f16', halves)
  const integers = new Int8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const values = new Float32Array(blocks * blockValues)
  for (let block = 0, at = 0; block < blocks; block++) {
    const step = steps[block] ?? 0
    for (let i = 2; i < blockBytes; i++) values[at++] = step * (integers[block * blockBytes + i] ?? 0)
  }
  return new Uint8Array(values.buffer)
}
