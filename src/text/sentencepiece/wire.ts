/**
 * Messages in Protocol Buffers' wire format, the format of SentencePiece's model files. Only known fields of a message are read. An unknown field may
 * change the meaning of the others, so it is refused with its number.
 */

/** Wire form of a field. `unread` fields have no effect on segmentation. */
export type FieldKind = 'bytes' | 'int' | 'float' | 'unread'

/** Fields that a message may have, by number. */
export type Fields = Readonly<Record<number, FieldKind>>

/** Values read from a message. A repeated field has all its values, in order. */
export interface Message {
  bytes(field: number): readonly Uint8Array[]
  /** The last of the values; undefined if there is none. */
  int(field: number): number | undefined
  float(field: number): number | undefined
}

/** Makes the error for an invalid message. */
export type Refuse = (what: string) => Error

/** Wire types by number, with the kinds of fields that use them. */
const wireTypes: Readonly<Record<number, FieldKind | 'eight bytes'>> = { 0: 'int', 1: 'eight bytes', 2: 'bytes', 5: 'float' }
/** Bytes of the longest integer. */
const longestInt = 10

/** An encoded integer: its 32 low bits, and its value where it is a length. */
interface Varint {
  readonly low: number
  readonly size: number
  readonly next: number
}

function varint(bytes: Uint8Array, at: number, refuse: Refuse): Varint {
  let [low, size] = [0, 0]
  for (let i = 0; i < longestInt; i++) {
    const byte = bytes[at + i]
    if (byte === undefined) throw refuse('ends inside of a number')
    if (i < 5) low |= (byte & 0x7f) << (7 * i)
    size += (byte & 0x7f) * 2 ** (7 * i)
    if (byte < 0x80) return { low, size, next: at + i + 1 }
  }
  throw refuse('has a number of more than ten bytes')
}

/**
 * Reads a message.
 * @throws the error made by `refuse`, for a field that is unknown, has another wire type, or does not end in the message
 */
export function readMessage(bytes: Uint8Array, fields: Fields, refuse: Refuse): Message {
  const parts = new Map<number, Uint8Array[]>()
  const numbers = new Map<number, number>()
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let at = 0; at < bytes.length; ) {
    const tag = varint(bytes, at, refuse)
    const [field, wire] = [tag.low >>> 3, wireTypes[tag.low & 7]]
    const kind = Object.hasOwn(fields, field) ? fields[field] : undefined
    if (kind === undefined) throw refuse(`has field ${field}, which is not known here`)
    if (wire === undefined || (kind !== 'unread' && kind !== wire)) {
      throw refuse(
        `has field ${field} in wire type ${tag.low & 7}, expected ${kind === 'unread' ? 'one that fields have' : kind}`,
      )
    }
    const value = wire === 'int' || wire === 'bytes' ? varint(bytes, tag.next, refuse) : undefined
    const from = wire === 'bytes' ? (value?.next ?? 0) : tag.next
    const to = value === undefined ? from + (wire === 'float' ? 4 : 8) : wire === 'int' ? value.next : from + value.size
    if (to > bytes.length) throw refuse(`ends inside of field ${field}`)
    if (kind === 'int') numbers.set(field, value?.low ?? 0)
    else if (kind === 'float') numbers.set(field, view.getFloat32(from, true))
    else if (kind === 'bytes') listOf(parts, field).push(bytes.subarray(from, to))
    at = to
  }
  return {
    bytes: (field) => parts.get(field) ?? [],
    int: (field) => numbers.get(field),
    float: (field) => numbers.get(field),
  }
}

function listOf<T>(lists: Map<number, T[]>, field: number): T[] {
  const list = lists.get(field) ?? []
  lists.set(field, list)
  return list
}
