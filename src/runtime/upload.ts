/** Uploads that are longer than one transfer: the next piece is read, checked and copied while the device receives the previous one. */
import type { NativeBuffer } from './native.js'

/** Maximum bytes that one native call copies on the JavaScript thread: about a millisecond. */
export const transferBytes = 8 * 2 ** 20

export interface Upload {
  /** Writes bytes at an offset of the buffer; they may be overwritten when it resolves. @throws the device's error of an earlier write */
  add(offset: number, bytes: Uint8Array): Promise<void>
  /** Resolves when all bytes are on the device. @throws errors of the device */
  done(): Promise<void>
}

/** Writes to `buffer`, with at most two writes in flight: a write copies its bytes before it returns. */
export function uploadTo(buffer: NativeBuffer): Upload {
  let before: Promise<void> = Promise.resolve()
  return {
    async add(offset, bytes) {
      for (let at = 0; at < bytes.byteLength; at += transferBytes) {
        const write = buffer.write(offset + at, bytes.subarray(at, at + transferBytes))
        // An awaiting caller gets the error; nothing awaits this write if an earlier one failed.
        write.catch(() => {})
        const earlier = before
        before = write
        await earlier
      }
    },
    done: () => before,
  }
}
