/**
 * Header of a GGUF file: metadata, and the location of each tensor. The file is not trusted: every count is checked against the bytes left in the
 * file before memory is allocated for it.
 */
import { usageError } from '../errors.js'
import { blockTypes } from './gguf_blocks.js'
import { type Reader, readerOf } from './gguf_reader.js'
import { shown } from './safetensors_header.js'

export type GgufValue = string | number | boolean | readonly string[] | readonly number[] | readonly boolean[]

/** Supported tensor types by number, with the values and bytes of a block. */
const tensorTypes = {
  0: { type: 'F32', values: 1, bytes: 4 },
  1: { type: 'F16', values: 1, bytes: 2 },
  30: { type: 'BF16', values: 1, bytes: 2 },
  2: { type: 'Q4_0', ...blockTypes.Q4_0 },
  3: { type: 'Q4_1', ...blockTypes.Q4_1 },
  6: { type: 'Q5_0', ...blockTypes.Q5_0 },
  7: { type: 'Q5_1', ...blockTypes.Q5_1 },
  8: { type: 'Q8_0', ...blockTypes.Q8_0 },
  12: { type: 'Q4_K', ...blockTypes.Q4_K },
  13: { type: 'Q5_K', ...blockTypes.Q5_K },
  14: { type: 'Q6_K', ...blockTypes.Q6_K },
} as const

export type GgufType = (typeof tensorTypes)[keyof typeof tensorTypes]['type']

/** Known types without support, for messages. */
const otherTypes: Readonly<Record<number, string>> = {
  ...{ 9: 'Q8_1', 10: 'Q2_K', 11: 'Q3_K', 15: 'Q8_K' },
  ...{ 16: 'IQ2_XXS', 17: 'IQ2_XS', 18: 'IQ3_XXS', 19: 'IQ1_S', 20: 'IQ4_NL', 21: 'IQ3_S', 22: 'IQ2_S', 23: 'IQ4_XS' },
  ...{ 24: 'I8', 25: 'I16', 26: 'I32', 27: 'I64', 28: 'F64', 29: 'IQ1_M', 34: 'TQ1_0', 35: 'TQ2_0', 39: 'MXFP4' },
}

const readTypes = ['F32', 'F16', 'BF16', ...Object.keys(blockTypes)].join(', ')

export interface GgufTensor {
  readonly type: GgufType
  /** Row-major: the fastest-changing extent comes last. */
  readonly shape: readonly number[]
  /** Byte range relative to the file's first data byte, from and to. */
  readonly from: number
  readonly to: number
}

export interface GgufHeader {
  readonly metadata: ReadonlyMap<string, GgufValue>
  readonly tensors: ReadonlyMap<string, GgufTensor>
  /** Position of the first data byte. */
  readonly first: number
}

const magic = 'GGUF'
/** First characters of a Git LFS pointer. */
const pointer = 'vers'
const pointerHint = 'it may be a pointer of Git LFS: fetch the model with `git lfs pull` in the folder'
const maxRank = 4
const maxAlignment = 2 ** 20

/**
 * Reads a header.
 * @param bytes the beginning of the file
 * @param fileBytes of the whole file
 * @throws `HeaderTooShort` if the header continues after `bytes`; usage `gguf.*` for an invalid header
 */
export function parseGgufHeader(bytes: Uint8Array, fileBytes: number, name: string): GgufHeader {
  const reader = readerOf(bytes, fileBytes, name)
  const { refuse } = reader
  const begin = reader.ascii(4)
  if (begin !== magic) throw refuse('gguf.header', 'does not begin with GGUF', begin === pointer ? pointerHint : undefined)
  const version = reader.u32()
  if (version !== 2 && version !== 3) {
    throw refuse(
      'gguf.version',
      `has version ${version === 0x0300_0000 ? '3 in big-endian byte order' : version}, expected 2 or 3`,
    )
  }
  const tensorCount = reader.count('tensors', 24)
  const metadata = readMetadata(reader, reader.count('metadata', 13))
  const alignment = metadata.get('general.alignment') ?? 32
  if (typeof alignment !== 'number' || alignment < 1 || alignment > maxAlignment || !Number.isInteger(Math.log2(alignment))) {
    throw refuse(
      'gguf.header',
      `general.alignment is ${shown(JSON.stringify(alignment))}, expected a power of two up to ${maxAlignment}`,
    )
  }
  const tensors = readTensors(reader, tensorCount)
  const first = Math.ceil(reader.place() / alignment) * alignment
  checkPlaces(tensors, { alignment, body: fileBytes - first, name })
  return { metadata, tensors, first }
}

const textType = 8
const flagType = 7
const listType = 9

function readMetadata(reader: Reader, count: number): Map<string, GgufValue> {
  const metadata = new Map<string, GgufValue>()
  for (let i = 0; i < count; i++) {
    const key = reader.text()
    if (metadata.has(key)) throw reader.refuse('gguf.duplicate', `names ${shown(key)} twice`)
    metadata.set(key, readValue(reader, reader.u32(), key))
  }
  return metadata
}

function readValue(reader: Reader, type: number, key: string): GgufValue {
  if (type === textType) return reader.text()
  if (type === flagType) return reader.flag()
  if (type === listType) return readList(reader, reader.u32(), key)
  return numberReader(reader, type, key)()
}

function readList(reader: Reader, type: number, key: string): GgufValue {
  if (type === textType) return Array.from({ length: reader.count(`texts of ${shown(key)}`, 8) }, () => reader.text())
  if (type === flagType) return Array.from({ length: reader.count(`flags of ${shown(key)}`, 1) }, () => reader.flag())
  const read = numberReader(reader, type, key)
  return Array.from({ length: reader.count(`numbers of ${shown(key)}`, reader.scalar(type)?.bytes ?? 1) }, read)
}

function numberReader(reader: Reader, type: number, key: string): () => number {
  const scalar = reader.scalar(type)
  if (scalar !== undefined) return () => scalar.read(reader.take(scalar.bytes))
  throw reader.refuse('gguf.header', `has metadata ${shown(key)} of type ${type}, which is not known`)
}

function readTensors(reader: Reader, count: number): Map<string, GgufTensor> {
  const tensors = new Map<string, GgufTensor>()
  for (let i = 0; i < count; i++) {
    const name = reader.text()
    if (tensors.has(name)) throw reader.refuse('gguf.duplicate', `names tensor ${shown(name)} twice`)
    const rank = reader.u32()
    if (rank < 1 || rank > maxRank)
      throw reader.refuse('gguf.tensor', `has tensor ${shown(name)} of ${rank} axes, expected 1 to ${maxRank}`)
    const shape = Array.from({ length: rank }, () => reader.u64()).toReversed()
    const code = reader.u32()
    const from = reader.u64()
    if (!Object.hasOwn(tensorTypes, code)) {
      throw reader.refuse(
        'gguf.dtype',
        `has tensor ${shown(name)} of type ${otherTypes[code] ?? code}, expected one of ${readTypes}`,
        'convert the model to one of these, such as F16 or Q8_0',
      )
    }
    const { type, values, bytes } = tensorTypes[code as keyof typeof tensorTypes]
    const columns = shape.at(-1) ?? 0
    const size = (shape.reduce((product, extent) => product * extent, 1) / values) * bytes
    if (columns % values !== 0 || size === 0 || !Number.isSafeInteger(from + size)) {
      throw reader.refuse(
        'gguf.tensor',
        `has tensor ${shown(name)}, ${type} [${shape.join(', ')}], expected rows of whole blocks of ${values}`,
      )
    }
    tensors.set(name, { type, shape, from, to: from + size })
  }
  return tensors
}

/** Checks that tensors lie inside the file, at aligned positions, without overlap. */
function checkPlaces(
  tensors: ReadonlyMap<string, GgufTensor>,
  { alignment, body, name }: { readonly alignment: number; readonly body: number; readonly name: string },
): void {
  let end = 0
  for (const [tensor, { from, to }] of [...tensors].sort(([, a], [, b]) => a.from - b.from || a.to - b.to)) {
    if (from % alignment !== 0) {
      throw usageError('gguf.offsets', `${name}: tensor ${shown(tensor)} begins at ${from}, expected a multiple of ${alignment}`)
    }
    if (from < end)
      throw usageError('gguf.offsets', `${name}: tensor ${shown(tensor)} begins at ${from}, inside another that ends at ${end}`)
    end = to
  }
  if (end <= body) return
  throw usageError('gguf.truncated', `${name}: the tensors take ${end} bytes, the file holds ${Math.max(0, body)}`, {
    hint: 'the download may be incomplete',
  })
}
