/**
 * Measures the rates that a device attains, with a large copy and a large matmul per storage type. Takes a second or two, on a GPU and on
 * the CPU device, whose sizes are smaller. Matmuls use the matmul library on random numbers: zeros need less power, and look faster.
 */
import { dtypeInfo, dtypes } from '../../ir/dtype.js'
import { encode } from '../../runtime/buffer.js'
import type { NativeDevice, NativeDeviceInfo, NativeStep } from '../../runtime/native.js'
import { normal, random } from '../../verify/random.js'
import type { Arithmetic } from '../floor.js'
import { peaksByAttributes } from './peaks.js'

/** Measured rates of a device. */
export interface Measured {
  /** Bytes per second, read and written, of a large copy. */
  readonly bandwidth: number
  /** Multiplications and additions per second, for the types whose matmuls the device supports. */
  readonly peak: Readonly<Partial<Record<Arithmetic, number>>>
}

const arithmetic = ['f16', 'bf16', 'f32', 'i8'] as const satisfies readonly Arithmetic[]

/** Approximate milliseconds per measurement. */
const budget = 150
/** Matmul extents that keep a GPU busy, and one that a CPU computes quickly. */
const [large, medium, small] = [8192, 4096, 192]
const drawn = 65_521

/** @throws environment `device.memory` if not even a small copy fits, and errors of the device */
export async function probe(device: NativeDevice, onStage: (what: string) => void = () => undefined): Promise<Measured> {
  const info = device.info()
  onStage('measuring the bandwidth')
  const bandwidth = await copied(device, info)
  const peak: Partial<Record<Arithmetic, number>> = {}
  for (const dtype of arithmetic) {
    if (!hasMatmuls(info, dtype)) continue
    onStage(`measuring ${dtype} arithmetic`)
    peak[dtype] = await multiplied(device, info, dtype)
  }
  return { bandwidth, peak }
}

/** True if a matmul measures the peak: a GPU without the library uses a plain loop, and one without instructions for a type emulates it. */
const hasMatmuls = (info: NativeDeviceInfo, dtype: Arithmetic): boolean =>
  info.kind === 'simt' ? dtype === 'f32' : info.matmulVersion > 0 && peaksByAttributes(info)[dtype] !== undefined

async function copied(device: NativeDevice, info: NativeDeviceInfo): Promise<number> {
  const most = info.kind === 'simt' ? 2 ** 26 : 2 ** 30
  const bytes = Math.max(2 ** 20, Math.min(most, Math.floor(info.memoryFreeBytes / 8)))
  const [from, to] = [device.allocate(bytes), device.allocate(bytes)]
  try {
    const slice = (buffer: typeof from) => ({ buffer, offset: 0, bytes })
    const fill = (buffer: typeof from): NativeStep => ({ kind: 'fill', label: 'fill', target: slice(buffer), value: 1 })
    const step: NativeStep = { kind: 'copy', label: 'copy', from: slice(from), to: slice(to) }
    await once(device, [fill(from), fill(to)])
    return (2e3 * bytes) / (await fastest(device, step))
  } finally {
    from.release()
    to.release()
  }
}

async function multiplied(device: NativeDevice, info: NativeDeviceInfo, dtype: Arithmetic): Promise<number> {
  const n = info.kind === 'simt' ? small : dtype === 'f32' ? medium : large
  const result = dtype === 'i8' ? 'i32' : dtype
  const bytes = (type: Arithmetic | 'i32'): number => n * n * dtypeInfo[type].bytes
  const [a, b, out] = [device.allocate(bytes(dtype)), device.allocate(bytes(dtype)), device.allocate(bytes(result))]
  try {
    const data = noise(dtype, bytes(dtype))
    await a.write(0, data)
    await b.write(0, data)
    const slice = (buffer: typeof a, size: number) => ({ buffer, offset: 0, bytes: size })
    const index = (type: Arithmetic | 'i32'): number => dtypes.indexOf(type)
    const step: NativeStep = {
      kind: 'matmul',
      label: `${dtype} matmul`,
      a: slice(a, bytes(dtype)),
      b: slice(b, bytes(dtype)),
      out: slice(out, bytes(result)),
      dtypes: [index(dtype), index(dtype), index(result)],
      allowTf32: false,
      extents: [1, n, n, n],
      strides: [
        [n * n, n, 1],
        [n * n, n, 1],
        [n * n, n, 1],
      ],
    }
    return (2e3 * n ** 3) / (await fastest(device, step))
  } finally {
    for (const buffer of [a, b, out]) buffer.release()
  }
}

/** Milliseconds of the fastest run within the budget. */
async function fastest(device: NativeDevice, step: NativeStep): Promise<number> {
  const program = device.program([step])
  try {
    const [first = budget] = await program.time(1, 1)
    const times = await program.time(Math.max(3, Math.min(50, Math.round(budget / Math.max(first, 1e-3)))), 1)
    return Math.min(first, ...times)
  } finally {
    program.release()
  }
}

async function once(device: NativeDevice, steps: readonly NativeStep[]): Promise<void> {
  const program = device.program(steps)
  try {
    await program.run([], [])
  } finally {
    program.release()
  }
}

/** Random bytes of a tensor: a short random block, repeated. */
function noise(dtype: Arithmetic, bytes: number): Uint8Array {
  const next = random(`probe ${dtype}`)
  const block =
    dtype === 'i8'
      ? encode(
          'i8',
          Int8Array.from({ length: drawn }, () => Math.round(40 * normal(next))),
        )
      : encode(
          dtype,
          Float32Array.from({ length: drawn }, () => normal(next)),
        )
  const data = new Uint8Array(bytes)
  for (let at = 0; at < bytes; at += block.byteLength) data.set(block.subarray(0, bytes - at), at)
  return data
}
