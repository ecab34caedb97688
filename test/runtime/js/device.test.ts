/** The `js` device as a device: order of work, released memory, aborted runs, ranges, and what it refuses. */
import { expect, it } from 'vitest'
import { jsDevice } from '../../../src/runtime/js/device.js'

const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values)

it('does work in the order of the calls', async () => {
  const device = jsDevice()
  const buffer = device.allocate(4)
  const whole = { buffer, offset: 0, bytes: 4 }
  const given = bytes(1, 2, 3, 4)
  const program = device.program([
    { kind: 'copy', label: 'copy', from: { buffer, offset: 0, bytes: 2 }, to: { buffer, offset: 2, bytes: 2 } },
  ])
  const [, [copied], after] = await Promise.all([buffer.write(0, given), program.run([], [whole]), buffer.read(0, 4)])
  expect([copied, after]).toEqual([bytes(1, 2, 1, 2), bytes(1, 2, 1, 2)])
  // The caller's bytes are copied when it calls.
  const writing = buffer.write(0, given)
  given.fill(9)
  await writing
  expect(await buffer.read(0, 4)).toEqual(bytes(1, 2, 3, 4))
})

it('fills, repeats, and counts no capture', async () => {
  const device = jsDevice()
  const buffer = device.allocate(2)
  const whole = { buffer, offset: 0, bytes: 2 }
  const program = device.program([{ kind: 'fill', label: 'zero', target: whole, value: 7 }])
  expect(await program.run([{ to: whole, data: bytes(1, 2) }], [whole], 3)).toEqual([bytes(7, 7)])
  expect([program.steps, program.captured, (await program.profile(2)).length, (await program.time(3, 1)).length]).toEqual([
    1,
    false,
    1,
    3,
  ])
})

it('stops a run between two steps', async () => {
  const device = jsDevice()
  const buffer = device.allocate(1)
  const fill = (value: number) => ({ kind: 'fill', label: 'fill', target: { buffer, offset: 0, bytes: 1 }, value }) as const
  const program = device.program([fill(1), fill(2)])
  const running = program.run([], [])
  program.abort()
  await expect(running).rejects.toMatchObject({ code: 'device.aborted' })
  // The next run is another one.
  await program.run([], [])
  expect(await buffer.read(0, 1)).toEqual(bytes(2))
})

it('refuses ranges outside of memory, foreign buffers, and memory after its end', async () => {
  const device = jsDevice()
  const buffer = device.allocate(4)
  await expect(buffer.write(3, bytes(1, 2))).rejects.toMatchObject({ code: 'device.invalid', message: /3 to 5/ })
  const foreign = jsDevice().allocate(4)
  const copy = {
    kind: 'copy',
    label: 'copy',
    from: { buffer: foreign, offset: 0, bytes: 4 },
    to: { buffer, offset: 0, bytes: 4 },
  }
  expect(() => device.program([copy as never])).toThrow(expect.objectContaining({ code: 'device.invalid' }))
  expect(() => device.loadLibrary('kernels.so')).toThrow(expect.objectContaining({ code: 'device.unavailable' }))
  expect(() => device.allocate(Number.MAX_SAFE_INTEGER)).toThrow(expect.objectContaining({ code: 'device.memory' }))
  buffer.release()
  await expect(buffer.read(0, 1)).rejects.toMatchObject({ code: 'device.closed' })
  device.close()
  expect(() => device.allocate(1)).toThrow(expect.objectContaining({ code: 'device.closed' }))
})
