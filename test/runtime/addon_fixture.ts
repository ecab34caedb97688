/** Builds the addon's test fixture (a device plugin and kernel library in one file) and opens devices over it. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadAddon, nativeFolder } from '../../src/runtime/addon.js'
import type {
  NativeBuffer,
  NativeCode,
  NativeDevice,
  NativeLibrary,
  NativeMatmul,
  NativeSlice,
  NativeStep,
} from '../../src/runtime/native.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const source = fileURLToPath(new URL('addon_fixture.cpp', import.meta.url))

export const nativeCodes: readonly NativeCode[] = ['INVALID', 'UNAVAILABLE', 'MEMORY', 'FAULT', 'DEVICE', 'ABORTED', 'CLOSED']

/** Compiles the fixture into a new folder and returns the shared object's path. */
export function buildFixture(): string {
  const path = join(mkdtempSync(join(tmpdir(), 'heddle-fixture-')), 'libfixture.so')
  const flags = ['-std=c++17', '-O1', '-shared', '-fPIC', '-Wall', '-Wextra', '-Werror', `-I${join(root, 'native/include')}`]
  execFileSync(process.env.CXX ?? 'c++', [...flags, source, '-o', path])
  return path
}

/** The plugins for tests of the addon: the fixture, and the simt device if it is built. */
export function plugins(fixture: string): [name: string, path: string][] {
  const simt = join(nativeFolder(), 'libheddle_simt.so')
  return [['fixture', fixture], ...(existsSync(simt) ? [['simt', simt] satisfies [string, string]] : [])]
}

export interface Bench {
  readonly device: NativeDevice
  readonly library: NativeLibrary
  readonly buffer: NativeBuffer
}

/** A device with the fixture's kernels and one buffer of 4096 bytes. */
export function openBench(plugin: string, fixture: string): Bench {
  const device = loadAddon().openDevice(plugin, 0)
  return { device, library: device.loadLibrary(fixture), buffer: device.allocate(4096) }
}

export const slice = (buffer: NativeBuffer, offset = 0, bytes = 64): NativeSlice => ({ buffer, offset, bytes })

/** y = x * factor over 16 floats: x at byte 0, y at byte 64. */
export const scale = ({ library, buffer }: Bench, factor = 2): NativeStep => ({
  kind: 'kernel',
  label: 'scale',
  library,
  key: 'scale',
  buffers: [slice(buffer, 0), slice(buffer, 64)],
  dims: [16],
  attrs: [factor],
})

export const slow = ({ library }: Bench, milliseconds: number): NativeStep => ({
  kind: 'kernel',
  label: 'slow',
  library,
  key: 'slow',
  buffers: [],
  dims: [milliseconds],
  attrs: [],
})

export const matmul = ({ buffer }: Bench): NativeMatmul => ({
  kind: 'matmul',
  label: 'matmul',
  a: slice(buffer, 0),
  b: slice(buffer, 64),
  out: slice(buffer, 128),
  dtypes: [0, 0, 0],
  allowTf32: false,
  extents: [1, 4, 4, 4],
  strides: [
    [16, 4, 1],
    [16, 4, 1],
    [16, 4, 1],
  ],
})

/** `ok`, or the code of the error a call throws or rejects with. */
export async function outcome(call: () => unknown): Promise<string> {
  try {
    await call()
    return 'ok'
  } catch (error) {
    return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : `no code: ${String(error)}`
  }
}
