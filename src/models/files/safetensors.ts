/**
 * Reads and writes safetensors files: an 8-byte little-endian header length, a JSON header, the tensors' bytes. The reader
 * refuses everything the format forbids; a file it accepts describes each of its data bytes exactly once.
 */
import { open } from 'node:fs/promises'
import { z } from 'zod'
import { usageError } from '../../errors.js'

/** Element types read here, with their sizes. */
export const elementBytes = { F32: 4, F16: 2, BF16: 2, I32: 4, I64: 8 } as const

export type ElementType = keyof typeof elementBytes

export interface StoredTensor {
  readonly dtype: ElementType
  readonly shape: readonly number[]
  readonly data: Uint8Array
}

export interface Safetensors {
  readonly tensors: ReadonlyMap<string, StoredTensor>
  readonly metadata: Readonly<Record<string, string>>
}

/** The format's own limit on the header. */
const maxHeaderBytes = 100_000_000
const prefixBytes = 8

const size = z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER)
const headerSchema = z.strictObject({ dtype: z.string(), shape: z.array(size), data_offsets: z.tuple([size, size]) })

/** Reads and checks a file. @throws usage `safetensors.read` if it cannot be read, and what `parseSafetensors` throws */
export async function readSafetensors(path: string): Promise<Safetensors> {
  const file = await open(path).catch((cause: unknown) => {
    throw usageError('safetensors.read', `cannot read ${path}: ${reason(cause)}`, { cause })
  })
  try {
    // The length is checked before the file is read, so that a header that lies costs no memory.
    const prefix = Buffer.alloc(prefixBytes)
    const { bytesRead } = await file.read(prefix, 0, prefixBytes, 0)
    headerLength(prefix.subarray(0, bytesRead), (await file.stat()).size, path)
    return parseSafetensors(await file.readFile(), path)
  } catch (cause) {
    if (cause instanceof Error && 'syscall' in cause) {
      throw usageError('safetensors.read', `cannot read ${path}: ${reason(cause)}`, { cause })
    }
    throw cause
  } finally {
    await file.close()
  }
}

/**
 * Parses the bytes of a file; `name` is used in messages. Tensor data are views of `bytes`.
 * @throws usage `safetensors.truncated`, `.header`, `.duplicate`, `.tensor`, `.dtype`, `.size`, `.offsets`
 */
export function parseSafetensors(bytes: Uint8Array, name: string): Safetensors {
  const length = headerLength(bytes.subarray(0, prefixBytes), bytes.byteLength, name)
  const header = parseHeader(bytes.subarray(prefixBytes, prefixBytes + length), name)
  const body = bytes.subarray(prefixBytes + length)
  const { __metadata__: metadata = {}, ...entries } = header
  if (!isMetadata(metadata)) throw usageError('safetensors.header', `${name}: __metadata__ is not an object of strings`)

  const tensors = new Map<string, StoredTensor>()
  const ranges: { tensor: string; from: number; to: number }[] = []
  for (const [tensor, entry] of Object.entries(entries)) {
    const { dtype, shape, from, to } = checkEntry(tensor, entry, name)
    ranges.push({ tensor, from, to })
    tensors.set(tensor, { dtype, shape, data: body.subarray(from, to) })
  }
  checkCoverage(ranges, body.byteLength, name)
  return { tensors, metadata }
}

function headerLength(prefix: Uint8Array, fileBytes: number, name: string): number {
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

function parseHeader(bytes: Uint8Array, name: string): Record<string, unknown> {
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
  const duplicate = findDuplicateKey(text)
  if (duplicate !== undefined) throw usageError('safetensors.duplicate', `${name}: the header names ${duplicate} twice`)
  return value as Record<string, unknown>
}

/** A key that occurs twice in one object of a valid JSON text. `JSON.parse` keeps the last and says nothing. */
function findDuplicateKey(text: string): string | undefined {
  const scopes: Set<string>[] = []
  for (const [token, string] of text.matchAll(/"((?:[^"\\]|\\.)*)"\s*:|"(?:[^"\\]|\\.)*"|[{}]/g)) {
    if (token === '{') scopes.push(new Set())
    else if (token === '}') scopes.pop()
    else if (string !== undefined) {
      const key = String(JSON.parse(`"${string}"`))
      const scope = scopes.at(-1)
      if (scope?.has(key)) return key
      scope?.add(key)
    }
  }
  return undefined
}

function checkEntry(tensor: string, entry: unknown, name: string) {
  const parsed = headerSchema.safeParse(entry)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw usageError(
      'safetensors.tensor',
      `${name}: tensor ${tensor}: ${issue?.path.join('.') ?? ''} ${issue?.message ?? 'is invalid'}`,
    )
  }
  const {
    dtype,
    shape,
    data_offsets: [from, to],
  } = parsed.data
  if (!isElementType(dtype)) {
    throw usageError('safetensors.dtype', `${name}: tensor ${tensor} has dtype ${dtype}`, {
      hint: `supported: ${Object.keys(elementBytes).join(', ')}`,
    })
  }
  const bytes = shape.reduce((product, extent) => product * extent, elementBytes[dtype])
  if (!Number.isSafeInteger(bytes) || to - from !== bytes) {
    throw usageError(
      'safetensors.size',
      `${name}: tensor ${tensor}, ${dtype} [${shape.join(', ')}], takes ${bytes} bytes, its data offsets [${from}, ${to}] hold ${to - from}`,
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

/** Sorted by offset, the tensors must follow each other without gap or overlap from 0 to the end of the file. */
function checkCoverage(ranges: { tensor: string; from: number; to: number }[], bodyBytes: number, name: string): void {
  let end = 0
  for (const { tensor, from, to } of ranges.sort((a, b) => a.from - b.from || a.to - b.to)) {
    if (from !== end) {
      const what = from < end ? 'overlaps the tensor before it' : 'leaves a gap'
      throw usageError('safetensors.offsets', `${name}: tensor ${tensor} ${what}: its data start at ${from}, expected ${end}`)
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

/** The bytes of a file that holds the tensors in the order given. */
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
  // Blanks after the header bring the data to a multiple of 8.
  const text = Buffer.from(json.padEnd(json.length + ((8 - (Buffer.byteLength(json) % 8)) % 8)))
  const prefix = Buffer.alloc(prefixBytes)
  prefix.writeBigUInt64LE(BigInt(text.byteLength))
  return new Uint8Array(Buffer.concat([prefix, text, ...parts]))
}

const reason = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))
