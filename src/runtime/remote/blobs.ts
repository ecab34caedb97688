/** Bytes on their way to another machine and back: by digest where it may have them, as changes where both ends know what was there before. */
import type { Link } from './link.js'
import { digestOf, type Opened, type SentData } from './protocol.js'

/** Shortest bytes that the other machine stores, so that a repeat sends their digest alone. */
const storedBytes = 2 ** 10

/** An error of a device, as the addon has them. */
export const refusal = (code: string, message: string): Error => Object.assign(new Error(message), { code })

/** Bytes by digest, or as they are if they are short. Long ones are sent ahead where the other machine is known to have none. */
export function blobSender(link: Link, { hasStored }: Opened) {
  const known = new Set<string>()
  return (data: Uint8Array, blobs: Map<string, Uint8Array>): SentData => {
    // The caller may overwrite its bytes before they are asked for.
    if (data.byteLength < storedBytes) return data
    const digest = digestOf(data)
    if (!hasStored && !known.has(digest)) link.tell({ op: 'give', digest, data })
    else blobs.set(digest, new Uint8Array(data))
    known.add(digest)
    return digest
  }
}

export type BlobSender = ReturnType<typeof blobSender>

/** Bytes that arrive in a frame start at any address; elements need an aligned one. */
export const aligned = (data: unknown): Uint8Array => new Uint8Array(data as Uint8Array)
