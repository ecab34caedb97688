/** Launchers of kernels with constants: they accept only tensors that the launching program does not write. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { NativeStep } from '../../src/runtime/native.js'
import * as fixtures from '../schedule/fixtures.js'
import { type Host, openKernels } from './host.js'

let host: Host
beforeAll(async () => {
  const { transpose } = fixtures
  const tensors = transpose.tensors.map((t) => (t.access === 'in' ? { ...t, constant: true as const } : t))
  host = await openKernels([{ ...transpose, types: { T: ['f32'] }, tensors }])
})
afterAll(() => host.close())

it('a constant is read like any input, and refused if a step writes it', async () => {
  const { device, library } = host
  expect(host.entry('transpose__f32').buffers.map(({ name, constant }) => [name, constant])).toEqual([
    ['x', true],
    ['y', undefined],
  ])
  const buffer = device.allocate(1024)
  const [x, y] = [0, 256].map((offset) => ({ buffer, offset, bytes: 24 }))
  if (x === undefined || y === undefined) throw new Error('no slices')
  const launch: NativeStep = {
    kind: 'kernel',
    label: 'transpose',
    library,
    key: 'transpose__f32',
    buffers: [x, y],
    dims: [2, 3],
    attrs: [],
  }
  const data = new Uint8Array(Float32Array.from([1, 2, 3, 4, 5, 6]).buffer)
  const [read] = await device.program([launch]).run([{ to: x, data }], [y])
  expect([...new Float32Array(read?.slice().buffer ?? new ArrayBuffer(0))]).toEqual([1, 4, 2, 5, 3, 6])

  // One byte of it is enough, and so is a step that comes later: steps are repeated.
  const fill: NativeStep = { kind: 'fill', label: 'fill', target: { buffer, offset: 23, bytes: 1 }, value: 0 }
  for (const steps of [
    [fill, launch],
    [launch, fill],
  ]) {
    await expect(device.program(steps).run([{ to: x, data }], [])).rejects.toMatchObject({
      code: 'device.invalid',
      message: 'transpose: kernel transpose__f32 reads x as a constant, but a step of the program writes it',
    })
  }
  const beside: NativeStep = { ...fill, target: { buffer, offset: 24, bytes: 8 } }
  await expect(device.program([beside, launch]).run([{ to: x, data }], [y])).resolves.toEqual([read])
})
