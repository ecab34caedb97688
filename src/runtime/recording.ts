/**
 * A device that computes nothing and a kernel source that only records requests. Running a model on them yields the kernels it needs, on a
 * machine that has neither the device nor the kernels.
 */
import type { KernelSource } from './library.js'
import type { NativeBuffer, NativeDevice, NativeDeviceInfo, NativeMatmul, NativeProgram } from './native.js'

export interface Recording {
  readonly device: NativeDevice
  readonly library: KernelSource
  /** Keys of the kernels requested so far, sorted. */
  keys(): readonly string[]
  /** Library matmuls in the programs so far, in order. */
  matmuls(): readonly NativeMatmul[]
}

/** @param architecture of a CUDA device, such as `90` */
export function recording(kind: NativeDeviceInfo['kind'], architecture: string = '90'): Recording {
  const keys = new Set<string>()
  const matmuls: NativeMatmul[] = []
  const info: NativeDeviceInfo = {
    kind,
    name: 'recording',
    memoryBytes: Number.MAX_SAFE_INTEGER,
    memoryFreeBytes: Number.MAX_SAFE_INTEGER,
    ...(kind === 'cuda' ? { computeCapability: `${architecture.slice(0, -1)}.${architecture.slice(-1)}` } : {}),
    multiprocessors: 1,
    driverVersion: 0,
    runtimeVersion: 0,
    matmulVersion: 0,
  }
  const empty = { target: kind, kernels: [] }
  const buffer = (bytes: number): NativeBuffer => ({
    bytes,
    write: async () => {},
    read: async (_, length) => new Uint8Array(length),
    release: () => {},
  })
  const program = (steps: number): NativeProgram => ({
    steps,
    captured: false,
    run: async (_, outputs) => outputs.map(({ bytes }) => new Uint8Array(bytes)),
    runAhead: async (outputs) => outputs.map(({ bytes }) => new Uint8Array(bytes)),
    begun: 0,
    begunAhead: 0,
    abort: () => {},
    capture: async () => {},
    time: async (repeats) => new Float64Array(repeats),
    profile: async () => new Float64Array(steps),
    release: () => {},
  })
  return {
    device: {
      info: () => info,
      allocate: buffer,
      loadLibrary: () => empty,
      program(steps) {
        for (const step of steps) if (step.kind === 'matmul') matmuls.push(step)
        return program(steps.length)
      },
      algorithms: async () => [],
      close: () => {},
    },
    library: {
      target: kind,
      async ensure(requested) {
        for (const key of requested) keys.add(key)
      },
      elsewhere(others) {
        for (const key of others) keys.add(key)
      },
      of: () => empty,
    },
    keys: () => [...keys].sort(),
    matmuls: () => matmuls,
  }
}
