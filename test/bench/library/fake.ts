/**
 * A GPU with a matmul library, with the calls that `heddle tune --library` uses: its algorithms compute a plain float32 matmul, or something else,
 * and take the time that each states. Nothing is timed.
 */
import type {
  NativeAlgorithm,
  NativeBuffer,
  NativeDevice,
  NativeMatmul,
  NativeProgram,
  NativeSlice,
  NativeStep,
} from '../../../src/runtime/native.js'

export interface FakeAlgorithm {
  readonly id: number
  /** Milliseconds of each replay, in order; for a program as many times as it has steps. */
  readonly times: readonly number[]
  /** Is added to every element. */
  readonly error?: number
  /** It cannot be run. */
  readonly broken?: boolean
}

export const fakeInfo = {
  kind: 'cuda',
  name: 'a GPU',
  memoryBytes: 2 ** 30,
  memoryFreeBytes: 2 ** 30,
  computeCapability: '9.0',
  multiprocessors: 1,
  driverVersion: 0,
  runtimeVersion: 0,
  matmulVersion: 130100,
  cacheBytes: 1,
} as const

const memory = new WeakMap<NativeBuffer, Uint8Array>()

const bytesOf = ({ buffer, offset, bytes }: NativeSlice): Uint8Array =>
  (memory.get(buffer) ?? new Uint8Array(buffer.bytes)).subarray(offset, offset + bytes)

function allocate(bytes: number): NativeBuffer {
  const data = new Uint8Array(bytes)
  const buffer: NativeBuffer = {
    bytes,
    async write(offset, from) {
      data.set(from, offset)
    },
    read: async (offset, count) => data.slice(offset, offset + count),
    release: () => {},
  }
  memory.set(buffer, data)
  return buffer
}

/** A float32 matmul without an epilogue, and `error` on top. */
function multiply({ a, b, out, extents: [batch, m, n, k], strides: [x, y, z] }: NativeMatmul, error: number): void {
  const view = (slice: NativeSlice) => {
    const bytes = bytesOf(slice)
    return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4)
  }
  const [left, right, result] = [view(a), view(b), view(out)]
  for (let p = 0; p < batch; p++)
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++) {
        let sum = 0
        for (let l = 0; l < k; l++)
          sum += (left[p * x[0] + i * x[1] + l * x[2]] ?? 0) * (right[p * y[0] + j * y[1] + l * y[2]] ?? 0)
        result[p * z[0] + i * z[1] + j * z[2]] = sum + error
      }
}

/** @param algorithms of the library; it uses the first by default */
export function fakeDevice(algorithms: readonly FakeAlgorithm[]): NativeDevice {
  const bytesFor = (id: number): Uint8Array => new Uint8Array(64).fill(id)
  const of = ({ algorithm }: NativeMatmul): FakeAlgorithm | undefined =>
    algorithm === undefined ? algorithms[0] : algorithms.find(({ id }) => id === algorithm[0])
  const program = (steps: readonly NativeStep[]): NativeProgram => {
    const matmuls = steps.flatMap((step) => (step.kind === 'matmul' ? [step] : []))
    const [first] = matmuls
    const chosen = first === undefined ? undefined : of(first)
    let replays = 0
    return {
      steps: steps.length,
      captured: false,
      async run(inputs, outputs) {
        for (const { to, data } of inputs) bytesOf(to).set(data)
        if (chosen?.broken === true) throw new Error('the library refuses it')
        for (const matmul of matmuls) multiply(matmul, chosen?.error ?? 0)
        return outputs.map((slice) => bytesOf(slice).slice())
      },
      runAhead: async () => [],
      begun: 0,
      begunAhead: 0,
      abort: () => {},
      capture: async () => {},
      time: async (repeats) => {
        const times = chosen?.times ?? [1]
        return Float64Array.from({ length: repeats }, () => steps.length * (times[replays++ % times.length] ?? 1))
      },
      profile: async () => new Float64Array(steps.length),
      release: () => {},
    }
  }
  return {
    info: () => fakeInfo,
    allocate,
    loadLibrary: () => ({ target: 'cuda', kernels: [] }),
    program,
    algorithms: async (_, most) =>
      algorithms.slice(0, most).map(({ id }): NativeAlgorithm => {
        return { bytes: bytesFor(id), id, tile: 0, stages: 0, split: 1, swizzle: 0, custom: 0, cluster: 0, workspaceBytes: 0 }
      }),
    close: () => {},
  }
}

/** A matmul over no memory in particular. */
export function plainMatmul(extents: NativeMatmul['extents'], extra: Partial<NativeMatmul> = {}): NativeMatmul {
  const [, m, n, k] = extents
  const nowhere: NativeSlice = { buffer: allocate(0), offset: 0, bytes: 0 }
  return {
    kind: 'matmul',
    label: 'layer0/fc1',
    ...{ a: nowhere, b: nowhere, out: nowhere },
    dtypes: [0, 0, 0],
    allowTf32: false,
    extents,
    strides: [
      [m * k, k, 1],
      [n * k, k, 1],
      [m * n, n, 1],
    ],
    ...extra,
  }
}
