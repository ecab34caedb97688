/**
 * Values as bytes with a digest of their content and of the key they were stored under: a damaged value, and one of another key, are
 * recognised and count as missing.
 */
import { createHash } from 'node:crypto'
import { deserialize, serialize } from 'node:v8'

/** Bytes of a SHA-256. */
const digestBytes = 32

const sealOf = (key: string, payload: Uint8Array): Buffer => createHash('sha256').update(key).update(payload).digest()

/** @throws DataCloneError for a value that cannot be serialised, such as a function */
export function sealed(key: string, value: unknown): Buffer {
  const payload = serialize(value)
  return Buffer.concat([sealOf(key, payload), payload])
}

/** The value; undefined if the bytes are damaged, or sealed under another key. @throws Error for a format of another version of V8 */
export function unsealed(key: string, content: Uint8Array): { readonly value: unknown } | undefined {
  const payload = content.subarray(digestBytes)
  return sealOf(key, payload).equals(content.subarray(0, digestBytes)) ? { value: deserialize(payload) } : undefined
}
