/** Memory shared by programs, and uploads in pieces, over buffers that log their use. */
import { describe, expect, it } from 'vitest'
import type { NativeBuffer, NativeDevice } from '../../src/runtime/native.js'
import { sharedArena } from '../../src/runtime/shared_arena.js'
import { transferBytes, uploadTo } from '../../src/runtime/upload.js'

const unused = (): never => {
  throw new Error('not used here')
}

/** A device that counts. */
function counting() {
  const live: number[] = []
  const device: NativeDevice = {
    ...{ info: unused, loadLibrary: unused, program: unused, algorithms: unused, close: unused },
    allocate(bytes) {
      live.push(bytes)
      return { bytes, write: unused, read: unused, release: () => void live.splice(live.indexOf(bytes), 1) }
    },
  }
  return { device, live }
}

describe('a shared arena', () => {
  it('is as large as the largest program, and smaller ones are released before it grows', async () => {
    const { device, live } = counting()
    const arena = sharedArena(device)
    const outgrown: number[][] = []
    const taken = arena.for(async () => void outgrown.push([...live]))
    const [first, second, third] = [await taken.take(100), await taken.take(60), await taken.take(101)]
    expect(second).toBe(first)
    expect(third.bytes).toBe(101)
    // No memory was in use when programs were asked to release it.
    expect(outgrown).toEqual([[], []])
    expect([live, arena.bytes]).toEqual([[101], 101])
    arena.release()
    expect([live, arena.bytes]).toEqual([[], 0])
  })
})

describe('uploads', () => {
  /** A buffer whose writes complete on request. */
  function slow() {
    const writes: { readonly offset: number; readonly first: number; readonly bytes: number; end(error?: Error): void }[] = []
    const buffer: NativeBuffer = {
      ...{ bytes: 2 ** 30, read: unused, release: unused },
      write: (offset, data) =>
        new Promise((resolve, reject) => {
          const end = (error?: Error): void => (error === undefined ? resolve() : reject(error))
          writes.push({ offset, first: data[0] ?? -1, bytes: data.byteLength, end })
        }),
    }
    return { buffer, writes }
  }
  const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve))

  it('have two writes under way, of as many bytes as a write copies at once', async () => {
    const { buffer, writes } = slow()
    const upload = uploadTo(buffer)
    const data = new Uint8Array(2 * transferBytes + 5).fill(1)
    data.fill(2, transferBytes)
    const adding = upload.add(7, data)
    await turn()
    expect(writes.map(({ offset, first, bytes }) => [offset, first, bytes])).toEqual([
      [7, 1, transferBytes],
      [7 + transferBytes, 2, transferBytes],
    ])
    for (const write of writes) write.end()
    await turn()
    expect(writes.map(({ bytes }) => bytes)).toEqual([transferBytes, transferBytes, 5])
    await adding
    let done = false
    const all = upload.done().then(() => {
      done = true
    })
    await turn()
    expect(done).toBe(false)
    writes[2]?.end()
    await all
  })

  it('report what the device rejects', async () => {
    const { buffer, writes } = slow()
    const upload = uploadTo(buffer)
    await upload.add(0, new Uint8Array(1))
    writes[0]?.end(new Error('full'))
    await expect(upload.add(1, new Uint8Array(1))).rejects.toThrow('full')
  })
})
