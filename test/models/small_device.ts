/** A device for tests of memory shortage. */
import { environmentError } from '../../src/errors.js'
import type { NativeDevice } from '../../src/runtime/native.js'

/** A device with limited memory, and a log of its usage. */
export function smallDevice(opened: NativeDevice, bound: () => number) {
  const log = { live: 0, buffers: 0 }
  const device: NativeDevice = {
    ...opened,
    info: () => ({ ...opened.info(), memoryFreeBytes: bound() - log.live }),
    allocate(bytes) {
      if (log.live + bytes > bound()) throw environmentError('device.memory', `out of device memory: asked for ${bytes} bytes`)
      const buffer = opened.allocate(bytes)
      const free = buffer.release
      let held = true
      log.live += bytes
      log.buffers++
      const release = (): void => {
        if (held) {
          log.live -= bytes
          log.buffers--
        }
        held = false
        free()
      }
      return Object.assign(buffer, { release })
    },
  }
  return { device, log }
}
