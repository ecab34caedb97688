/** Uploads of what is longer than one transfer: the next piece is read, checked and copied while the device takes the one before. */
import type { NativeBuffer } from './native.js'

/** The most bytes one native call copies on the JavaScript thread: about a millisecond. */
export const transferBytes = 8 * 2 ** 20

export interface Upload {
  /** Takes bytes for a place in the buffer; they may be overwritten when it resolves. @throws what the device rejects an earlier write with */
  add(offset: number, bytes: Uint8Array): Promise<void>
  /** Resolves when all of it is on the device. @throws what the device rejects with */
  done(): Promise<void>
}

/** Writes to `buffer`, two of them under way at most: a write copies its bytes before it returns. */
export function uploadTo(buffer: NativeBuffer): Upload {
  let before: Promise<void> = Promise.resolve()
  return {
    async add(offset, bytes) {
      for (let at = 0; at < bytes.byteLength; at += transferBytes) {
        const write = buffer.write(offset + at, bytes.subarray(at, at + transferBytes))
        // Whoever waits for it hears why it failed; nobody does where an earlier one failed.
        write.catch(() => {})
        const earlier = before
        before = write
        await earlier
      }
    },
    done: () => before,
  }
}
