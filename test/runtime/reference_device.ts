/**
 * A device written in TypeScript: real bytes, real offsets, kernels run by their ops' bodies. It tests the whole runtime (binding, strides, arena,
 * wiring) without compiled code. It checks slices like the simt device.
 */
import { layouts, ops } from '../../specs/index.js'
import { type KernelEntry, type Manifest, manifestSchema } from '../../src/emit/manifest/manifest.js'
import { type DType, dtypeInfo, dtypes, isDType } from '../../src/ir/dtype.js'
import type { HostTensor } from '../../src/ir/evaluate.js'
import { instanceKey } from '../../src/ir/instance.js'
import { kernelName } from '../../src/ir/op_name.js'
import { runOp } from '../../src/lang/run.js'
import type { Op, TensorDecl } from '../../src/lang/types.js'
import { decode, encode } from '../../src/runtime/buffer.js'
import { findLayout, layoutOffset, layoutSize } from '../../src/runtime/layouts.js'
import { type LoadedKernels, loadedKernels } from '../../src/runtime/library.js'
import type {
  NativeBuffer,
  NativeDevice,
  NativeKernelStep,
  NativeMatmul,
  NativeSlice,
  NativeStep,
} from '../../src/runtime/native.js'

const digest = '0'.repeat(64)
const axesOf = (decl: TensorDecl): string[] => (decl.dims === '' ? [] : decl.dims.split(' '))

/** A manifest as if every instance of every op had been generated. */
export function referenceManifest(): Manifest {
  return manifestSchema.parse({ version: 1, kernels: Object.values(ops).flatMap(entriesOf) })
}

function entriesOf(op: Op): KernelEntry[] {
  let combinations: Record<string, DType>[] = [{}]
  for (const [param, choices] of Object.entries(op.types)) {
    combinations = combinations.flatMap((types) => choices.map((dtype) => ({ ...types, [param]: dtype })))
  }
  return combinations.map((types) => {
    const buffer =
      (access: 'in' | 'out') =>
      ([name, decl]: [string, TensorDecl]) => {
        const dtype = isDType(decl.type) ? decl.type : types[decl.type]
        if (dtype === undefined) throw new Error(`${op.name}: no storage type for ${name}`)
        const updates = access === 'out' && op.updates[name] !== undefined ? { updates: op.updates[name] } : {}
        return { name, access, dtype, dims: axesOf(decl), layout: decl.layout?.name ?? 'row', ...updates }
      }
    const key = instanceKey(kernelName(op.name), types)
    return {
      key,
      op: kernelName(op.name),
      types,
      fixedDims: {},
      file: `${key}.cu`,
      digest,
      buffers: [...Object.entries(op.inputs).map(buffer('in')), ...Object.entries(op.outputs).map(buffer('out'))],
      dims: [...op.dims],
      attrs: Object.entries(op.attrs).map(([name, value]) => ({ name, type: 'f32' as const, default: value })),
      variants: [],
    }
  })
}

export function referenceLibrary(manifest: Manifest): LoadedKernels {
  const kernels = manifest.kernels.map((entry) => ({
    key: entry.key,
    digest,
    buffers: entry.buffers.length,
    dims: entry.dims.length,
    attrs: entry.attrs.length,
  }))
  return loadedKernels({ target: 'simt', kernels })
}

interface Log {
  /** Buffers allocated and not released. */
  live: number
  /** Programs run, without those that only fill. */
  runs: number
}

/** The device and its log. */
export function referenceDevice(manifest: Manifest): { readonly device: NativeDevice; readonly log: Log } {
  const log: Log = { live: 0, runs: 0 }
  const memory = new WeakMap<NativeBuffer, Uint8Array>()
  const bytesOf = ({ buffer, offset, bytes }: NativeSlice): Uint8Array => {
    const whole = memory.get(buffer)
    if (whole === undefined) throw new Error('a slice of another device')
    if (offset % 256 !== 0 || offset + bytes > whole.byteLength)
      throw new Error(`slice ${offset}+${bytes} of ${whole.byteLength} bytes`)
    return whole.subarray(offset, offset + bytes)
  }
  const device: NativeDevice = {
    info: () => ({
      kind: 'simt',
      name: 'reference',
      memoryBytes: 0,
      memoryFreeBytes: 0,
      multiprocessors: 1,
      driverVersion: 0,
      runtimeVersion: 0,
      matmulVersion: 0,
    }),
    allocate(bytes) {
      log.live++
      const data = new Uint8Array(bytes)
      const buffer: NativeBuffer = {
        bytes,
        write: async (offset, source) => data.set(source, offset),
        read: async (offset, length) => data.slice(offset, offset + length),
        release: () => {
          log.live--
        },
      }
      memory.set(buffer, data)
      return buffer
    },
    loadLibrary: () => referenceLibrary(manifest).library,
    algorithms: async () => [],
    program(steps) {
      let aborted = false
      return {
        steps: steps.length,
        captured: false,
        runAhead(outputs) {
          return this.run([], outputs)
        },
        begun: 0,
        begunAhead: 0,
        async run(inputs, outputs, repeats = 1) {
          aborted = false
          for (const { to, data } of inputs) bytesOf(to).set(data)
          for (let repeat = 0; repeat < repeats; repeat++) {
            for (const step of steps) {
              if (aborted) throw Object.assign(new Error('aborted'), { code: 'ABORTED' })
              await Promise.resolve()
              runStep(step, bytesOf, manifest)
            }
          }
          if (steps.some((step) => step.kind !== 'fill')) log.runs++
          return outputs.map((slice) => bytesOf(slice).slice())
        },
        abort: () => {
          aborted = true
        },
        capture: async () => {},
        time: async (repeats) => new Float64Array(repeats),
        profile: async () => new Float64Array(steps.length),
        release: () => {},
      }
    },
    close: () => {},
  }
  return { device, log }
}

type Bytes = (slice: NativeSlice) => Uint8Array

function runStep(step: NativeStep, bytes: Bytes, manifest: Manifest): void {
  switch (step.kind) {
    case 'fill':
      bytes(step.target).fill(step.value)
      return
    case 'copy':
      bytes(step.to).set(bytes(step.from))
      return
    case 'matmul':
      runMatmul(step, bytes)
      return
    case 'kernel':
      runKernel(step, bytes, manifest)
  }
}

const store = (dtype: DType, values: Float64Array): Uint8Array => {
  if (dtype === 'i32') return encode(dtype, Int32Array.from(values))
  if (dtype === 'i8') return encode(dtype, Int8Array.from(values))
  if (dtype === 'f32' || dtype === 'f16' || dtype === 'bf16') return encode(dtype, Float32Array.from(values))
  throw new Error(`the reference device stores no ${dtype}`)
}

function runKernel(step: NativeKernelStep, bytes: Bytes, manifest: Manifest): void {
  const entry = manifest.kernels.find((candidate) => candidate.key === step.key)
  const op = ops[entry?.op ?? '']
  if (entry === undefined || op === undefined) throw new Error(`no kernel ${step.key}`)
  const dims = Object.fromEntries(entry.dims.map((name, i) => [name, step.dims[i] ?? 0]))
  const inputs: Record<string, HostTensor> = {}
  const outputs: (() => void)[] = []
  const results = new Map<string, HostTensor>()
  for (const [i, buffer] of entry.buffers.entries()) {
    const slice = step.buffers[i]
    if (slice === undefined) throw new Error(`${step.label}: no buffer ${buffer.name}`)
    const shape = buffer.dims.map((name) => dims[name] ?? 0)
    const layout = findLayout(layouts, buffer.layout, shape.length)
    const elements = layoutSize(layout, shape)
    if (slice.bytes !== elements * dtypeInfo[buffer.dtype].bytes)
      throw new Error(`${step.label}: ${buffer.name} has ${slice.bytes} bytes`)
    const offsets = [...indicesOf(shape)].map((index) => layoutOffset(layout, index, shape))
    if (buffer.access === 'in') {
      const stored = decode(buffer.dtype, bytes(slice))
      inputs[buffer.name] = { shape, data: Float64Array.from(offsets, (offset) => stored[offset] ?? Number.NaN) }
    } else {
      outputs.push(() => {
        const values = new Float64Array(elements).fill(Number.NaN)
        for (const [at, offset] of offsets.entries()) values[offset] = results.get(buffer.name)?.data[at] ?? Number.NaN
        bytes(slice).set(store(buffer.dtype, values))
      })
    }
  }
  const attrs = Object.fromEntries(entry.attrs.map(({ name }, i) => [name, step.attrs[i] ?? Number.NaN]))
  for (const [name, tensor] of Object.entries(runOp(op, inputs, { dims, attrs }))) results.set(name, tensor)
  for (const write of outputs) write()
}

function* indicesOf(shape: readonly number[]): Generator<number[]> {
  const [first, ...rest] = shape
  if (first === undefined) yield []
  else for (let i = 0; i < first; i++) for (const tail of indicesOf(rest)) yield [i, ...tail]
}

function runMatmul({ label, a, b, out, dtypes: types, extents, strides, epilogue }: NativeMatmul, bytes: Bytes): void {
  const dtype = (i: number): DType => dtypes[i] ?? 'u8'
  const [left, right] = [decode(dtype(types[0]), bytes(a)), decode(dtype(types[1]), bytes(b))]
  const result = Float64Array.from(decode(dtype(types[2]), bytes(out)))
  const added = [epilogue?.bias, epilogue?.residual].map((slice) =>
    slice === undefined ? [] : decode(dtype(types[2]), bytes(slice)),
  )
  const least = epilogue?.relu === true ? 0 : Number.NEGATIVE_INFINITY
  const [batches, rows, columns, depth] = extents
  const [sa, sb, so] = strides
  for (let p = 0; p < batches; p++) {
    for (let i = 0; i < rows; i++) {
      for (let j = 0; j < columns; j++) {
        let total = 0
        for (let k = 0; k < depth; k++) {
          total +=
            (left[p * sa[0] + i * sa[1] + k * sa[2]] ?? Number.NaN) * (right[p * sb[0] + j * sb[1] + k * sb[2]] ?? Number.NaN)
        }
        const at = p * so[0] + i * so[1] + j * so[2]
        if (at >= result.length) throw new Error(`${label}: out[${at}] of ${result.length}`)
        result[at] = Math.max(total + (added[0]?.[j] ?? 0) + (added[1]?.[at] ?? 0), least)
      }
    }
  }
  bytes(out).set(store(dtype(types[2]), result))
}
