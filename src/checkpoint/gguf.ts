/**
 * GGUF files: metadata and tensors in one file. Opening a file reads its header alone; bytes of tensors are read by position on demand. Quantised
 * blocks are converted to float32.
 */
import { usageError } from '../errors.js'
import { type Refusal, readAt, withFile } from '../files.js'
import { type PieceSource, readPieces, versionOf } from './file_pieces.js'
import { blockTypes, fromBlocks } from './gguf_blocks.js'
import { type GgufHeader, type GgufTensor, type GgufType, type GgufValue, parseGgufHeader } from './gguf_header.js'
import { HeaderTooShort } from './gguf_reader.js'
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

/** Undefined if more of the file is needed. */
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
  if (!isBlocks(type)) {
    return { dtype: type, shape, bytes: to - from, pieces: (signal) => readPieces(source, from, to, signal), rows }
  }
  const blocks = blockTypes[type]
  return {
    ...{ dtype: 'F32', stored: type, shape, bytes: values * Float32Array.BYTES_PER_ELEMENT, rows },
    async *pieces(signal) {
      const pieceBytes = Math.floor(pieceValues / blocks.values) * blocks.bytes
      for await (const piece of readPieces(source, from, to, signal, pieceBytes)) yield fromBlocks(blocks, piece)
    },
  }
}

const isBlocks = (type: GgufType): type is keyof typeof blockTypes => Object.hasOwn(blockTypes, type)

/** Values converted from blocks per chunk. */
const pieceValues = 2 ** 21
