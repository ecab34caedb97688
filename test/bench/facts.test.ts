/** Device capabilities: from attributes and earlier measurements, never from a name. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ceilingsOf, deviceCeilings, factsFile } from '../../src/bench/facts/facts.js'
import { peaksByAttributes } from '../../src/bench/facts/peaks.js'
import { cacheOf, rotationOf } from '../../src/bench/rotation.js'
import { floorNotes } from '../../src/bench/table.js'
import type { NativeBuffer, NativeDevice, NativeDeviceInfo, NativeStep } from '../../src/runtime/native.js'

const gpu: NativeDeviceInfo = {
  kind: 'cuda',
  name: 'some GPU',
  memoryBytes: 8 * 2 ** 30,
  memoryFreeBytes: 8 * 2 ** 30,
  computeCapability: '8.0',
  multiprocessors: 108,
  driverVersion: 13_000,
  runtimeVersion: 13_000,
  matmulVersion: 130_000,
  cacheBytes: 40 * 2 ** 20,
  bandwidth: 2.039e12,
  clockHz: 1.41e9,
  id: 'GPU-1',
}

/** Takes one millisecond per GiB copied or per TFLOP; counts its requests. */
function fake(info: NativeDeviceInfo, asked: string[] = []): NativeDevice {
  const buffer: NativeBuffer = { bytes: 0, write: async () => {}, read: async () => new Uint8Array(), release: () => {} }
  const milliseconds = (step: NativeStep | undefined): number =>
    step?.kind === 'copy'
      ? step.from.bytes / 2 ** 30
      : step?.kind === 'matmul'
        ? (2 * step.extents.reduce((a, b) => a * b)) / 1e12
        : 0
  return {
    info: () => info,
    allocate: () => buffer,
    loadLibrary: () => ({ target: 'cuda', kernels: [] }),
    algorithms: async () => [],
    close: () => {},
    program: (steps) => ({
      steps: steps.length,
      captured: false,
      run: async () => [],
      runAhead: async () => [],
      begun: 0,
      begunAhead: 0,
      abort: () => {},
      capture: async () => {},
      time: async (repeats) => {
        asked.push(steps[0]?.label ?? '')
        return Float64Array.from({ length: repeats }, (_, i) => milliseconds(steps[0]) * (i === 1 ? 1 : 1.5))
      },
      profile: async () => new Float64Array(),
      release: () => {},
    }),
  }
}

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-facts-'))
})
afterEach(() => rm(folder, { recursive: true }))

describe('peaks by attributes', () => {
  it('match the data sheets of GPUs of every generation', () => {
    const teraflops = (computeCapability: string, multiprocessors: number, clockHz: number) =>
      Object.fromEntries(
        Object.entries(peaksByAttributes({ ...gpu, computeCapability, multiprocessors, clockHz })).map(([dtype, peak]) => [
          dtype,
          Math.round(peak / 1e12),
        ]),
      )
    expect(teraflops('8.0', 108, 1.41e9)).toEqual({ f32: 19, f16: 312, bf16: 312, i8: 624 })
    expect(teraflops('9.0', 132, 1.83e9)).toMatchObject({ f16: 989, i8: 1979 })
    expect(teraflops('7.0', 80, 1.53e9)).toEqual({ f32: 16, f16: 125 })
    expect(teraflops('7.5', 40, 1.59e9)).toMatchObject({ f16: 65 })
  })

  it('are not invented for an unknown generation or clock', () => {
    const { clockHz: _, ...silent } = gpu
    expect(peaksByAttributes(silent)).toEqual({})
    expect(peaksByAttributes({ ...gpu, computeCapability: '13.0' })).toEqual({})
    expect(peaksByAttributes({ ...gpu, computeCapability: '6.1' })).toEqual({})
  })
})

describe('ceilings', () => {
  it('do not depend on the name of the device', () => {
    const named = { ...gpu, name: 'NVIDIA H200' }
    expect(ceilingsOf(named)).toEqual(ceilingsOf(gpu))
    expect(factsFile(named, folder)).toBe(factsFile(gpu, folder))
  })

  it('are measured once, and again on request or with another driver', async () => {
    const asked: string[] = []
    const device = fake(gpu, asked)
    const first = await deviceCeilings(device, { folder })
    expect(first).toMatchObject({
      bandwidth: 2000 * 2 ** 30,
      measured: true,
      cacheBytes: 40 * 2 ** 20,
      stated: { bandwidth: 2.039e12 },
    })
    expect(first?.peak.f16).toBeCloseTo(1e15)
    expect(new Set(asked)).toEqual(new Set(['copy', 'f16 matmul', 'bf16 matmul', 'f32 matmul', 'i8 matmul']))
    const once = asked.length
    expect(await deviceCeilings(device, { folder })).toEqual(first)
    expect(asked).toHaveLength(once)
    await deviceCeilings(device, { folder, probe: 'again' })
    expect(asked).toHaveLength(2 * once)
    await deviceCeilings(fake({ ...gpu, driverVersion: 13_010 }, asked), { folder })
    expect(asked).toHaveLength(3 * once)
  })

  it('come from attributes without a measurement and without permission to measure', async () => {
    const ceilings = await deviceCeilings(fake(gpu), { folder, probe: 'never' })
    expect(ceilings).toMatchObject({ bandwidth: 2.039e12, measured: false })
    expect(floorNotes(ceilings, gpu, 'f16')).toEqual([
      "Floor: 2.04 TB/s or 312 TFLOP/s of f16 (by the device's attributes, not measured), whichever takes longer.",
    ])
  })

  it('a damaged cached measurement is repeated', async () => {
    await deviceCeilings(fake(gpu), { folder })
    const path = factsFile(gpu, folder)
    for (const text of [
      '',
      '{',
      '{"version":1,"bandwidth":-1}',
      (await readFile(path, 'utf8')).replace('"version": 1', '"version": 9'),
    ]) {
      await writeFile(path, text)
      const asked: string[] = []
      expect(await deviceCeilings(fake(gpu, asked), { folder })).toMatchObject({ bandwidth: 2000 * 2 ** 30 })
      expect(asked).not.toEqual([])
    }
  })

  it('a folder that cannot be written to costs a measurement, nothing else', async () => {
    await writeFile(join(folder, 'file'), '')
    expect(await deviceCeilings(fake(gpu), { folder: join(folder, 'file') })).toMatchObject({ measured: true })
  })

  it('name unknown values', () => {
    const { bandwidth: _, cacheBytes: __, clockHz: ___, ...silent } = gpu
    expect(ceilingsOf(silent)).toBeUndefined()
    expect(floorNotes(undefined, silent, 'f16')).toEqual(['No physical floor: the limits of some GPU (cuda) are unknown.'])
    const notes = floorNotes(ceilingsOf(silent, { bandwidth: 1e12, peak: {} }), silent, 'f16')
    expect(notes).toEqual([
      'Floor: bytes at 1 TB/s (measured); the arithmetic peak of f16 is unknown.',
      'The device does not report the size of its cache: 128 MiB are assumed.',
    ])
  })
})

it('rotation exceeds the cache of any GPU, and an assumed one if it is unknown', () => {
  const { cacheBytes: _, ...silent } = gpu
  expect(rotationOf(2 ** 20, cacheOf(gpu))).toEqual({ passes: 80, bytes: 80 * 2 ** 20, evicts: true })
  expect(cacheOf(silent)).toBe(128 * 2 ** 20)
  expect(cacheOf({ ...gpu, kind: 'simt' })).toBeUndefined()
})
