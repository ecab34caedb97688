/** Kernels of the graphs of this folder as emitted source on the CPU device, compared with the evaluator. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { generate } from '../../src/emit/generate.js'
import { type KernelEntry, manifestSchema } from '../../src/emit/manifest/manifest.js'
import { writeGenerated } from '../../src/emit/write.js'
import type { DType } from '../../src/ir/dtype.js'
import type { HostTensor } from '../../src/ir/evaluate.js'
import { withFactors } from '../../src/ir/evaluate_product.js'
import { evaluateTemplate } from '../../src/ir/evaluate_template.js'
import { resolveDType } from '../../src/ir/instance.js'
import type { DTypeRef } from '../../src/ir/kernel.js'
import type { MatmulKernel } from '../../src/ir/product.js'
import { decode } from '../../src/runtime/buffer.js'
import { type Device, openDevice } from '../../src/runtime/device.js'
import { loadKernels } from '../../src/runtime/library.js'
import type { NativeLibrary } from '../../src/runtime/native.js'
import { encodeNumbers, roundTo } from '../../src/runtime/numbers.js'
import { buildKernels, buildNative } from '../../src/toolchain/index.js'
import { compare } from '../../src/verify/compare.js'
import { tolerance } from '../../src/verify/tolerance.js'
import { draw } from './host.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

export interface Kernels {
  readonly device: Device
  readonly library: NativeLibrary
  readonly entries: ReadonlyMap<string, KernelEntry>
  close(): Promise<void>
}

/** Builds and loads kernels, each in the storage types that it is given. */
export async function openProducts(
  kernels: readonly MatmulKernel[],
  typesOf: (kernel: MatmulKernel) => readonly DType[],
): Promise<Kernels> {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-products-'))
  const limited = kernels.map((kernel) => ({ ...kernel, types: Object.hasOwn(kernel.types, 'T') ? { T: typesOf(kernel) } : {} }))
  const files = generate([], {}, limited)
  await writeGenerated(folder, files)
  const native = await buildNative()
  process.env.HEDDLE_NATIVE ??= native.folder
  // Most of the time would go into the compiler.
  const built = await buildKernels({ target: 'simt', root, generated: folder, outDir: join(folder, 'out'), optimise: '-O0' })
  const device = openDevice('simt')
  const manifest = manifestSchema.parse(JSON.parse(files.get('manifest.json') ?? ''))
  return {
    device,
    library: loadKernels(device, built.library, manifest).library,
    entries: new Map(manifest.kernels.map((entry) => [entry.key, entry])),
    close: async () => {
      device.close()
      await rm(folder, { recursive: true })
    },
  }
}

type Numbers = Readonly<Record<string, number>>

/** Inputs and outputs of a launch, by tensor. */
interface Launched {
  readonly entry: KernelEntry
  readonly inputs: Readonly<Record<string, HostTensor>>
  readonly outputs: readonly { readonly name: string; readonly dtype: DType; readonly stored: ArrayLike<number> }[]
}

/** Launches a kernel on the numbers that `draw` makes. */
export async function launch(
  { device, library, entries }: Kernels,
  kernel: MatmulKernel,
  key: string,
  dims: Numbers,
): Promise<Launched> {
  const entry = entries.get(key)
  if (entry === undefined) throw new Error(`there is no kernel ${key}`)
  const shape = (axes: readonly string[]): number[] => axes.map((axis) => dims[axis] ?? 1)
  const buffers = kernel.tensors.map(({ name, access, dims: axes }, at) => {
    const dtype = entry.buffers[at]?.dtype ?? 'f32'
    const size = shape(axes).reduce((product, extent) => product * extent, 1)
    const data = roundTo(
      dtype,
      Array.from({ length: size }, (_, i) => draw(dtype, name, i, dims.v ?? 1)),
    )
    const bytes = encodeNumbers(dtype, data)
    return {
      name,
      access,
      dtype,
      data,
      bytes,
      shape: shape(axes),
      slice: { buffer: device.allocate(bytes.length), offset: 0, bytes: bytes.length },
    }
  })
  const program = device.program([
    {
      kind: 'kernel',
      label: key,
      library,
      key,
      buffers: buffers.map(({ slice }) => slice),
      dims: entry.dims.map((dim) => dims[dim] ?? 1),
      attrs: entry.attrs.map((attr) => attr.default),
    },
  ])
  const [given, wanted] = [buffers.filter(({ access }) => access === 'in'), buffers.filter(({ access }) => access === 'out')]
  const results = await program.run(
    given.map(({ slice, bytes }) => ({ to: slice, data: bytes })),
    wanted.map(({ slice }) => slice),
  )
  program.release()
  for (const { slice } of buffers) slice.buffer.release()
  const inputs = Object.fromEntries(given.map(({ name, data, shape: of }) => [name, { data, shape: of }]))
  const outputs = wanted.map(({ name, dtype }, i) => ({ name, dtype, stored: decode(dtype, results[i] ?? new Uint8Array()) }))
  return { entry, inputs, outputs }
}

/** Runs a kernel and describes differences from its IR; empty if there are none. */
export async function differences(host: Kernels, kernel: MatmulKernel, key: string, dims: Numbers): Promise<readonly string[]> {
  const { entry, inputs, outputs } = await launch(host, kernel, key, dims)
  const attrs = Object.fromEntries(kernel.attrs.map((attr) => [attr.name, attr.default]))
  const typed = (ref: DTypeRef): DType => resolveDType(ref, entry.types as Readonly<Record<string, DType>>)
  const round = (ref: DTypeRef, values: ArrayLike<number>) => roundTo(typed(ref), values)
  const stored = withFactors(kernel, inputs, dims, attrs, round)
  const expected = [evaluateTemplate(stored.kernel, stored.inputs, dims, attrs)]
  // The only row of a matmul may be scaled after it, and is not rounded then.
  if (kernel.a.prologue !== undefined && dims[kernel.m] === 1) expected.push(evaluateTemplate(kernel, inputs, dims, attrs))
  return outputs.flatMap(({ name, dtype, stored: found }) => {
    const rule = tolerance({ dtype, class: 'matmul', length: dims.k ?? 1, scale: 1 })
    const results = expected.map((each) => compare(found, each[name]?.data ?? [], rule))
    const result = results.find(({ passed }) => passed) ?? results[0] ?? { passed: false, summary: 'nothing is expected' }
    return result.passed ? [] : [`${name} at ${JSON.stringify(dims)}: ${result.summary}`]
  })
}
