/**
 * Checked reads of a GGUF header: numbers, texts and counts from the beginning of the file, in order. Counts are bounded before memory is allocated
 * for their entries.
 */
import { type CodeOf, usageError } from '../errors.js'

/** Thrown when more of the file is needed to read its header. */
export class HeaderTooShort extends Error {}

const maxText = 2 ** 26
/** Limit on entries of all lists together: the largest vocabularies have half a million tokens and merges. */
const maxItems = 2 ** 23

/** A cursor over the header with checked reads. */
export type Reader = ReturnType<typeof readerOf>

type Refuse = (code: CodeOf<'gguf'>, what: string, hint?: string) => Error

export function readerOf(bytes: Uint8Array, fileBytes: number, name: string) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const text = new TextDecoder()
  let at = 0
  let items = 0
  const refuse: Refuse = (code, what, hint) => usageError(code, `${name}: the file ${what}`, hint === undefined ? {} : { hint })
  /** Position of the next `count` bytes, after a bounds check. */
  const take = (count: number): number => {
    const from = at
    if (from + count > fileBytes) {
      throw refuse(
        'gguf.truncated',
        `ends in its header: ${count} bytes at ${from} are missing`,
        'the download may be incomplete',
      )
    }
    if (from + count > bytes.byteLength) throw new HeaderTooShort()
    at += count
    return from
  }
  const scalars = scalarsOf(view, refuse)
  const u32 = (): number => scalars[4].read(take(4))
  const u64 = (): number => scalars[10].read(take(8))
  return {
    refuse,
    u32,
    u64,
    scalar: (type: number) => (Object.hasOwn(scalars, type) ? scalars[type as keyof typeof scalars] : undefined),
    take,
    flag: (): boolean => view.getUint8(take(1)) !== 0,
    place: (): number => at,
    ascii: (count: number): string => {
      const from = take(count)
      return String.fromCharCode(...bytes.subarray(from, from + count))
    },
    text(): string {
      const length = u64()
      if (length > maxText) throw refuse('gguf.header', `has a text of ${length} bytes at ${at}, at most ${maxText} are read`)
      const from = take(length)
      return text.decode(bytes.subarray(from, from + length))
    },
    /** A count of entries that take at least `least` bytes each. */
    count(what: string, least: number): number {
      const count = u64()
      if (count * least > fileBytes - at) {
        throw refuse('gguf.truncated', `claims ${count} ${what}, more than its ${fileBytes} bytes can hold`)
      }
      items += count
      if (items > maxItems) throw refuse('gguf.header', `claims ${count} ${what}, at most ${maxItems} things are read in all`)
      if (count * least > bytes.byteLength - at) throw new HeaderTooShort()
      return count
    },
  }
}

/** Readers of numbers by metadata type, with the bytes of each. */
function scalarsOf(view: DataView, refuse: Refuse) {
  /** No valid file has integers beyond 2^53. */
  const whole = (value: bigint, place: number): number => {
    if (value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(value)
    throw refuse('gguf.header', `has the integer ${value} at ${place}, expected a magnitude below 2^53`)
  }
  return {
    0: { bytes: 1, read: (place: number) => view.getUint8(place) },
    1: { bytes: 1, read: (place: number) => view.getInt8(place) },
    2: { bytes: 2, read: (place: number) => view.getUint16(place, true) },
    3: { bytes: 2, read: (place: number) => view.getInt16(place, true) },
    4: { bytes: 4, read: (place: number) => view.getUint32(place, true) },
    5: { bytes: 4, read: (place: number) => view.getInt32(place, true) },
    6: { bytes: 4, read: (place: number) => view.getFloat32(place, true) },
    10: { bytes: 8, read: (place: number) => whole(view.getBigUint64(place, true), place) },
    11: { bytes: 8, read: (place: number) => whole(view.getBigInt64(place, true), place) },
    12: { bytes: 8, read: (place: number) => view.getFloat64(place, true) },
  } as const
}
