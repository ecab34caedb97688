/** Fixture kernels built for the simt device and run against the IR's own evaluation: helpers of the tests of emitted source. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type GeneratedFiles, generate } from '../../src/emit/generate.js'
import { type KernelEntry, manifestSchema } from '../../src/emit/manifest/manifest.js'
import { writeGenerated } from '../../src/emit/write.js'
import { type DType, dtypeInfo } from '../../src/ir/dtype.js'
import { emptyEnv, evaluateExpr, evaluateKernel, forEachPoint, type HostTensor } from '../../src/ir/evaluate.js'
import type { Kernel, TensorParam } from '../../src/ir/kernel.js'
import type { TemplateKernel } from '../../src/ir/template.js'
import { decode } from '../../src/runtime/buffer.js'
import { type Device, openDevice } from '../../src/runtime/device.js'
import { loadKernels } from '../../src/runtime/library.js'
import type { NativeLibrary, NativeSlice } from '../../src/runtime/native.js'
import { encodeNumbers, roundTo } from '../../src/runtime/numbers.js'
import { buildKernels, buildNative } from '../../src/toolchain/index.js'
import { compare } from '../../src/verify/compare.js'
import { type OpClass, tolerance } from '../../src/verify/tolerance.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

export interface Subject {
  readonly kernel: Kernel
  readonly class: OpClass
  /** Extents in addition to m and n. */
  readonly extents?: (n: number) => Record<string, number>
  /** Explicit inputs instead of the common pattern. */
  readonly inputs?: Readonly<Record<string, (i: number, dims: Readonly<Record<string, number>>) => number>>
}

/** The kernels of a test file on an open device. */
export interface Host {
  readonly device: Device
  readonly library: NativeLibrary
  /** The entry of a kernel instance. @throws when there is none */
  entry(key: string): KernelEntry
  close(): Promise<void>
}

/** Storage types each kernel is built for. */
const builtTypes = ['f32', 'f16'] as const

/** Keys of the instances of subjects, as `openHost` builds them. */
export const instances = (subjects: readonly Subject[]): { readonly subject: Subject; readonly key: string }[] =>
  subjects.flatMap((subject) =>
    Object.hasOwn(subject.kernel.types, 'T')
      ? builtTypes.map((T) => ({ subject, key: `${subject.kernel.name}__${T}` }))
      : [{ subject, key: subject.kernel.name }],
  )

/** Builds and loads the kernels of subjects. */
export const openHost = (subjects: readonly Subject[]): Promise<Host> =>
  openKernels(subjects.map(({ kernel }) => ({ ...kernel, types: Object.hasOwn(kernel.types, 'T') ? { T: builtTypes } : {} })))

/** Builds and loads every instance of kernels and of template kernels. */
export const openKernels = (kernels: readonly Kernel[], templates: readonly TemplateKernel[] = []): Promise<Host> =>
  openFiles(generate(kernels, {}, templates))

/** Builds and loads generated source. */
export async function openFiles(files: GeneratedFiles): Promise<Host> {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-fixtures-'))
  await writeGenerated(folder, files)
  const native = await buildNative()
  process.env.HEDDLE_NATIVE ??= native.folder
  // Some kernels run for a moment and some draw a million words: a compromise between their optimal settings.
  const built = await buildKernels({ target: 'simt', root, generated: folder, outDir: join(folder, 'out'), optimise: '-Og' })
  const device = openDevice('simt')
  const manifest = manifestSchema.parse(JSON.parse(files.get('manifest.json') ?? ''))
  const { library } = loadKernels(device, built.library, manifest)
  const entries = new Map(manifest.kernels.map((entry) => [entry.key, entry]))
  return {
    device,
    library,
    entry: (key) => {
      const entry = entries.get(key)
      if (entry === undefined) throw new Error(`no kernel ${key}`)
      return entry
    },
    close: async () => {
      device.close()
      await rm(folder, { recursive: true })
    },
  }
}

/** +-1 and +-2 in a fixed pattern: sums of thousands of them are exact, and no term hides. */
const draw = (i: number): number => [1, -2, 2, -1, 1, 1, -1, 2, -2, -1, 2][(i * 3 + (i >> 4)) % 11] ?? 0

const total = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1)

/** Reads a stored tensor back in logical order. */
export function logical(tensor: TensorParam, stored: ArrayLike<number>, dims: Readonly<Record<string, number>>): number[] {
  const shape = tensor.dims.map((dim) => dims[dim] ?? 1)
  const env = emptyEnv(Object.fromEntries(tensor.layout.axes.map((axis, i) => [axis, shape[i] ?? 1])))
  const values: number[] = []
  forEachPoint(shape, (point) => {
    for (const [i, axis] of tensor.layout.axes.entries()) env.values.set(axis, point[i] ?? 0)
    values.push(stored[Number(evaluateExpr(tensor.layout.offset, env))] ?? Number.NaN)
  })
  return values
}

export interface Outcome {
  readonly inputs: Readonly<Record<string, HostTensor>>
  /** Stored elements of each output. */
  readonly outputs: readonly { readonly tensor: TensorParam; readonly dtype: DType; readonly stored: ArrayLike<number> }[]
}

type Dims = Readonly<Record<string, number>>

/** Launches a kernel on inputs that `make` draws. */
export async function launch(
  { device, library }: Host,
  kernel: Pick<Kernel, 'tensors'>,
  entry: KernelEntry,
  dims: Dims,
  make: (tensor: string) => (i: number, dims: Dims) => number,
  attrs: Readonly<Record<string, number>> = {},
): Promise<Outcome> {
  const inputs: Record<string, HostTensor> = {}
  const slices = new Map<string, NativeSlice>()
  const buffers = kernel.tensors.map((tensor, at) => {
    const dtype = entry.buffers[at]?.dtype ?? 'f32'
    const shape = tensor.dims.map((dim) => dims[dim] ?? 1)
    const env = emptyEnv(Object.fromEntries(tensor.layout.axes.map((axis, i) => [axis, shape[i] ?? 1])))
    const bytes = Number(evaluateExpr(tensor.layout.size, env)) * dtypeInfo[dtype].bytes
    const data = roundTo(
      dtype,
      Array.from({ length: total(shape) }, (_, i) => make(tensor.name)(i, dims)),
    )
    if (tensor.access === 'in') inputs[tensor.name] = { data, shape }
    const slice = slices.get(tensor.updates ?? '') ?? { buffer: device.allocate(bytes), offset: 0, bytes }
    slices.set(tensor.name, slice)
    return { tensor, dtype, data, slice }
  })
  const program = device.program([
    {
      kind: 'kernel',
      label: entry.key,
      library,
      key: entry.key,
      buffers: buffers.map(({ slice }) => slice),
      dims: entry.dims.map((dim) => dims[dim] ?? 1),
      attrs: entry.attrs.map((attr) => attrs[attr.name] ?? attr.default),
    },
  ])
  const given = buffers.filter(({ tensor }) => tensor.access === 'in')
  const wanted = buffers.filter(({ tensor }) => tensor.access === 'out')
  const bytes = await program.run(
    given.map(({ slice, dtype, data }) => ({ to: slice, data: encodeNumbers(dtype, data) })),
    wanted.map(({ slice }) => slice),
  )
  program.release()
  for (const { buffer } of slices.values()) buffer.release()
  const outputs = wanted.map(({ tensor, dtype }, i) => ({ tensor, dtype, stored: decode(dtype, bytes[i] ?? new Uint8Array()) }))
  return { inputs, outputs }
}

/** Runs a case and describes its wrong outputs; empty if all are right. */
export async function check(
  host: Host,
  { kernel, class: opClass, extents, inputs: given }: Subject,
  entry: KernelEntry,
  m: number,
  n: number,
): Promise<string> {
  const dims = { m, n, ...extents?.(n) }
  const { inputs, outputs } = await launch(host, kernel, entry, dims, (tensor) => given?.[tensor] ?? draw)
  const expected = evaluateKernel(kernel, inputs, dims)
  const complaints = outputs.map(({ tensor, dtype, stored }) => {
    const rule = tolerance({ dtype, class: opClass, length: n, scale: 1 })
    const result = compare(logical(tensor, stored, dims), roundTo(dtype, expected[tensor.name]?.data ?? []), rule)
    return result.passed ? '' : `${tensor.name} at ${m} x ${n}: ${result.summary}`
  })
  return complaints.filter((text) => text !== '').join('; ')
}
