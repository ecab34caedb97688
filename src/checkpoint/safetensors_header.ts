/**
 * Header of a safetensors file. Everything that the format forbids is refused. An accepted header describes each data byte of its file exactly once.
 */
import { usageError } from '../errors.js'
import { duplicateKey } from './duplicate_key.js'

/** Supported element types, with their sizes. */
export const elementBytes = {
  F32: 4,
  F16: 2,
  BF16: 2,
  F8_E4M3: 1,
  F8_E5M2: 1,
  I8: 1,
  U8: 1,
  I16: 2,
  I32: 4,
  U32: 4,
  I64: 8,
} as const

export type ElementType = keyof typeof elementBytes

/** A tensor, and its byte range: from and to, relative to the first byte after the header. */
export interface TensorEntry {
  readonly dtype: ElementType
  readonly shape: readonly number[]
  readonly from: number
  readonly to: number
}

export interface Header {
  readonly tensors: ReadonlyMap<string, TensorEntry>
  readonly metadata: Readonly<Record<string, string>>
}

/** Bytes of the length prefix of a header. */
export const prefixBytes = 8
/** Limit of the format. */
const maxHeaderBytes = 100_000_000
/** No model has more axes; a message can print as many extents. */
const maxRank = 32
/** Longer names are truncated in messages. */
const shownCharacters = 120

/** A name as shown in messages. */
export const shown = (name: string): string => (name.length > shownCharacters ? `${name.slice(0, shownCharacters)}...` : name)

/**
 * Length of a header from the first bytes of a file of `fileBytes`, checked before memory of that length is allocated.
 * @throws usage `safetensors.truncated`, `safetensors.header`
 */
export function headerLength(prefix: Uint8Array, fileBytes: number, name: string): number {
  if (prefix.byteLength < prefixBytes) {
    throw usageError('safetensors.truncated', `${name}: the file has ${fileBytes} bytes, too few for a safetensors header`)
  }
  const length = new DataView(prefix.buffer, prefix.byteOffset, prefixBytes).getBigUint64(0, true)
  if (length > BigInt(maxHeaderBytes)) {
    throw usageError('safetensors.header', `${name}: the header claims ${length} bytes, at most ${maxHeaderBytes} are allowed`)
  }
  if (BigInt(fileBytes - prefixBytes) < length) {
    throw usageError(
      'safetensors.truncated',
      `${name}: the header claims ${length} bytes, the file has ${fileBytes - prefixBytes} after its length`,
      { hint: 'the download may be incomplete' },
    )
  }
  return Number(length)
}

/**
 * Reads a header that is followed by `bodyBytes` of data.
 * @throws usage `safetensors.header`, `.duplicate`, `.tensor`, `.dtype`, `.size`, `.offsets`, `.truncated`
 */
export function parseHeader(bytes: Uint8Array, bodyBytes: number, name: string): Header {
  const { __metadata__: metadata = {}, ...entries } = parseObject(bytes, name)
  if (!isMetadata(metadata)) throw usageError('safetensors.header', `${name}: __metadata__ is not an object of strings`)
  const tensors = new Map(Object.entries(entries).map(([tensor, entry]) => [tensor, checkEntry(tensor, entry, name)]))
  checkCoverage(tensors, bodyBytes, name)
  return { tensors, metadata }
}

function parseObject(bytes: Uint8Array, name: string): Record<string, unknown> {
  let text: string
  let value: unknown
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    value = JSON.parse(text)
  } catch (cause) {
    throw usageError('safetensors.header', `${name}: the header is not JSON`, { cause })
  }
  if (!text.startsWith('{') || typeof value !== 'object' || value === null) {
    throw usageError('safetensors.header', `${name}: the header is not a JSON object`)
  }
  const duplicate = duplicateKey(text)
  if (duplicate !== undefined) throw usageError('safetensors.duplicate', `${name}: the header names ${shown(duplicate)} twice`)
  return value as Record<string, unknown>
}

const isSize = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

const fields = ['dtype', 'shape', 'data_offsets']

function checkEntry(tensor: string, entry: unknown, name: string): TensorEntry {
  const refuse = (what: string) => usageError('safetensors.tensor', `${name}: tensor ${shown(tensor)}: ${what}`)
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) throw refuse('is not an object')
  const unknown = Object.keys(entry).find((key) => !fields.includes(key))
  if (unknown !== undefined) throw refuse(`has a field ${shown(unknown)}, expected ${fields.join(', ')}`)
  const { dtype, shape, data_offsets: offsets } = entry as Readonly<Record<string, unknown>>
  if (typeof dtype !== 'string') throw refuse('dtype is not a string')
  if (!Array.isArray(shape)) throw refuse('shape is not a list')
  if (shape.length > maxRank) throw refuse(`has ${shape.length} axes, at most ${maxRank} are read`)
  if (!shape.every(isSize)) throw refuse('shape has an element that is not an integer from 0 to 2^53 - 1')
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isSize)) throw refuse('data_offsets are not two integers')
  const [from, to] = offsets as [number, number]
  if (!isElementType(dtype)) {
    throw usageError('safetensors.dtype', `${name}: tensor ${shown(tensor)} has dtype ${shown(dtype)}`, {
      hint: `supported: ${Object.keys(elementBytes).join(', ')}`,
    })
  }
  const bytes = shape.reduce((product, extent) => product * extent, elementBytes[dtype])
  if (!Number.isSafeInteger(bytes) || to - from !== bytes) {
    throw usageError(
      'safetensors.size',
      `${name}: tensor ${shown(tensor)}, ${dtype} [${shape.join(', ')}], takes ${bytes} bytes, its data offsets [${from}, ${to}] hold ${to - from}`,
    )
  }
  return { dtype, shape, from, to }
}

const isMetadata = (value: unknown): value is Record<string, string> =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  Object.values(value).every((text) => typeof text === 'string')

const isElementType = (dtype: string): dtype is ElementType => Object.hasOwn(elementBytes, dtype)

/** Checks that tensors sorted by offset follow each other without gap or overlap, from 0 to the end of the file. */
function checkCoverage(tensors: ReadonlyMap<string, TensorEntry>, bodyBytes: number, name: string): void {
  let end = 0
  for (const [tensor, { from, to }] of [...tensors].sort(([, a], [, b]) => a.from - b.from || a.to - b.to)) {
    if (from !== end) {
      const what = from < end ? 'overlaps the tensor before it' : 'leaves a gap'
      throw usageError(
        'safetensors.offsets',
        `${name}: tensor ${shown(tensor)} ${what}: its data start at ${from}, expected ${end}`,
      )
    }
    end = to
  }
  if (end > bodyBytes) {
    throw usageError('safetensors.truncated', `${name}: the tensors take ${end} bytes, the file holds ${bodyBytes}`, {
      hint: 'the download may be incomplete',
    })
  }
  if (end < bodyBytes) {
    throw usageError('safetensors.offsets', `${name}: the tensors take ${end} bytes, the file holds ${bodyBytes - end} more`)
  }
}
