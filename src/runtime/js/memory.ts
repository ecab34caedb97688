/** Memory of the `js` device: byte arrays, read and written in the order of the calls, as a device with a stream does. */
import { environmentError, usageError } from '../../errors.js'
import type { NativeBuffer, NativeSlice } from '../native.js'
import { unwritten } from '../poison.js'

export interface Memory {
  allocate(bytes: number): NativeBuffer
  /** Bytes of a slice, shared with its buffer. @throws usage `device.invalid` */
  bytesOf(slice: NativeSlice): Uint8Array
  /** Runs work after all work requested before. @throws usage `device.closed` */
  inOrder<T>(work: () => T | Promise<T>): Promise<T>
  close(): void
}

/** @throws usage `device.invalid` */
function expectInside(whole: Uint8Array, offset: number, bytes: number): void {
  if (Number.isInteger(offset) && Number.isInteger(bytes) && offset >= 0 && bytes >= 0 && offset + bytes <= whole.byteLength)
    return
  throw usageError('device.invalid', `bytes ${offset} to ${offset + bytes}: expected a range of ${whole.byteLength} bytes`)
}

const closed = (what: string) => usageError('device.closed', `${what} was closed`)

function allocated(bytes: number): Uint8Array {
  try {
    return new Uint8Array(bytes).fill(unwritten)
  } catch (cause) {
    const hint = 'use a smaller batch or a smaller model'
    throw environmentError('device.memory', `${bytes} bytes cannot be allocated`, { hint, cause })
  }
}

export function openMemory(): Memory {
  const contents = new WeakMap<NativeBuffer, Uint8Array>()
  let isOpen = true
  let last: Promise<unknown> = Promise.resolve()
  const inOrder = <T>(work: () => T | Promise<T>): Promise<T> => {
    if (!isOpen) return Promise.reject(closed('the js device'))
    const running = last.then(work)
    last = running.catch(() => undefined)
    return running
  }
  return {
    inOrder,
    allocate(bytes) {
      if (!isOpen) throw closed('the js device')
      const data = allocated(bytes)
      let released = false
      const use = async <T>(offset: number, length: number, work: () => T): Promise<T> => {
        if (released) throw closed('the buffer')
        expectInside(data, offset, length)
        return inOrder(work)
      }
      const buffer: NativeBuffer = {
        bytes,
        write(offset, source) {
          // The caller may overwrite its bytes as soon as this returns.
          const copied = source.slice()
          return use(offset, copied.byteLength, () => data.set(copied, offset))
        },
        read: (offset, length) => use(offset, length, () => data.slice(offset, offset + length)),
        // Slices of running steps keep the bytes alive.
        release: () => {
          released = true
        },
      }
      contents.set(buffer, data)
      return buffer
    },
    bytesOf({ buffer, offset, bytes }) {
      const whole = contents.get(buffer)
      if (whole === undefined) throw usageError('device.invalid', 'a buffer belongs to another device')
      expectInside(whole, offset, bytes)
      return whole.subarray(offset, offset + bytes)
    },
    close: () => {
      isOpen = false
    },
  }
}
