/** The device layer: typed errors, transfers in pieces, kernel libraries compared with the manifest. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { KernelEntry, Manifest } from '../../src/emit/manifest/manifest.js'
import { download, upload } from '../../src/runtime/buffer.js'
import { type Device, type DeviceKind, detectDevices, openDevice } from '../../src/runtime/device.js'
import { loadKernels } from '../../src/runtime/library.js'
import { buildFixture, matmul, slice, slow } from './addon_fixture.js'

const fixture = buildFixture()

const entry = (key: string, digest: string, buffers: number, dims: string[], attrs: string[]): KernelEntry => ({
  key,
  op: key,
  types: {},
  fixedDims: {},
  file: `${key}.cu`,
  digest,
  buffers: Array.from({ length: buffers }, (_, i) => ({
    name: `b${i}`,
    access: 'in',
    dtype: 'f32',
    dims: [],
    layout: 'rowMajor',
  })),
  dims,
  attrs: attrs.map((name) => ({ name, type: 'f32', default: 0 })),
  variants: [],
})
const manifestOf = (...kernels: KernelEntry[]): Manifest => ({ version: 1, kernels })

describe('the simt device', () => {
  let device: Device
  beforeAll(() => {
    device = openDevice('simt')
  })
  afterAll(() => device.close())

  it('describes itself', () => {
    const info = device.info()
    expect(info).toMatchObject({ kind: 'simt', driverVersion: 0, matmulVersion: 0 })
    expect(info.computeCapability).toBeUndefined()
    expect(info.multiprocessors).toBeGreaterThan(0)
    expect(detectDevices().find(({ kind }) => kind === 'simt')).toMatchObject({ available: true })
  })

  it('moves more than one piece', async () => {
    const values = Float32Array.from({ length: 5 * 2 ** 20 + 3 }, (_, i) => i % 1021)
    const buffer = device.allocate(values.byteLength + 8)
    await upload(buffer, 8, 'f32', values)
    const back = await download(buffer, 8, 'f32', values.length)
    expect(values.findIndex((value, i) => value !== back[i])).toBe(-1)
    await upload(buffer, 2, 'f16', Float32Array.of(0.1))
    expect(await download(buffer, 2, 'f16', 1)).toEqual(Float32Array.of(0.0999755859375))
    buffer.release()
  })

  it('runs programs on wrapped buffers', async () => {
    const buffer = device.allocate(4096)
    const library = device.loadLibrary(fixture)
    const bench = { device, library, buffer }
    await upload(
      buffer,
      0,
      'f32',
      Float32Array.from({ length: 32 }, (_, i) => i % 5),
    )
    const program = device.program([slow(bench, 0), matmul(bench)])
    await program.capture()
    const [out] = await program.run([], [slice(buffer, 128)])
    const a = await download(buffer, 0, 'f32', 32)
    const expected = Array.from({ length: 16 }, (_, i) =>
      [0, 1, 2, 3].reduce((sum, k) => sum + (a[(i >> 2) * 4 + k] ?? 0) * (a[16 + (i & 3) * 4 + k] ?? 0), 0),
    )
    expect(out).toEqual(new Uint8Array(Float32Array.from(expected).buffer))
    expect(program.captured).toBe(false)
  })

  it('throws HeddleErrors with the class of the responsible party', async () => {
    const buffer = device.allocate(8)
    expect(() => device.allocate(2 ** 52)).toThrow(expect.objectContaining({ code: 'device.memory', class: 'environment' }))
    expect(() => device.allocate(-1)).toThrow(expect.objectContaining({ code: 'device.invalid', class: 'usage' }))
    await expect(buffer.write(4, new Uint8Array(8))).rejects.toMatchObject({ code: 'device.invalid', class: 'usage' })
    buffer.release()
    await expect(buffer.read(0, 8)).rejects.toMatchObject({ code: 'device.closed' })
    const step = { ...slow({ device, buffer, library: device.loadLibrary(fixture) }, 0), key: 'fault', dims: [] }
    await expect(device.program([step]).run([], [])).rejects.toMatchObject({
      code: 'device.fault',
      class: 'finding',
      exitCode: 1,
    })
  })

  it('refuses an unknown kind', () => {
    const kind: string = 'tpu'
    expect(() => openDevice(kind as DeviceKind)).toThrow(expect.objectContaining({ code: 'device.kind', exitCode: 2 }))
  })

  it('compares a kernel library with the manifest', () => {
    const scale = entry('scale', '5c', 2, ['n'], ['factor'])
    const known = ['behind', 'constants', 'fault', 'scale', 'slow', 'unsaid']
    expect(loadKernels(device, fixture, manifestOf(scale)).library.kernels.map(({ key }) => key)).toEqual(known)
    for (const other of [
      { ...scale, digest: 'other' },
      { ...scale, dims: ['n', 'm'] },
      { ...scale, attrs: [] },
      { ...scale, buffers: [] },
    ]) {
      expect(() => loadKernels(device, fixture, manifestOf(other))).toThrow(
        expect.objectContaining({
          code: 'library.stale',
          hint: 'run heddle build',
          message: expect.stringContaining('kernel scale'),
        }),
      )
    }
    expect(() => loadKernels(device, '/nowhere.so', manifestOf())).toThrow(expect.objectContaining({ code: 'library.missing' }))
  })
})
