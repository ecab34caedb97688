/** Fixture kernels, shapes no shipped op has, run on the simt device against the IR's own evaluation. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { generate } from '../../src/emit/generate.js'
import { type KernelEntry, manifestSchema } from '../../src/emit/manifest.js'
import { writeGenerated } from '../../src/emit/write.js'
import { type DType, dtypeInfo } from '../../src/ir/dtype.js'
import { emptyEnv, evaluateExpr, evaluateKernel, forEachPoint, type HostTensor } from '../../src/ir/evaluate.js'
import type { Kernel, TensorParam } from '../../src/ir/kernel.js'
import { decode } from '../../src/runtime/buffer.js'
import { type Device, openDevice } from '../../src/runtime/device.js'
import { loadKernels } from '../../src/runtime/library.js'
import type { NativeLibrary } from '../../src/runtime/native.js'
import { buildKernels, buildNative } from '../../src/toolchain/index.js'
import { compare } from '../../src/verify/compare.js'
import { encodeNumbers, roundTo } from '../../src/verify/storage.js'
import { type OpClass, tolerance } from '../../src/verify/tolerance.js'
import * as fixtures from '../schedule/fixtures.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

interface Subject {
  readonly kernel: Kernel
  readonly class: OpClass
  /** Extents beside m and n. */
  readonly extents?: (n: number) => Record<string, number>
  /** Integer inputs. */
  readonly integers?: Readonly<Record<string, (i: number, dims: Readonly<Record<string, number>>) => number>>
}

const subjects: readonly Subject[] = [
  { kernel: fixtures.transpose, class: 'exact' },
  { kernel: fixtures.gatherRows, class: 'exact', extents: () => ({ v: 11 }), integers: { ids: (i) => (i * 7) % 11 } },
  { kernel: fixtures.concatenate, class: 'exact', extents: (n) => ({ a: n - 1, b: 1 }) },
  { kernel: fixtures.raggedSum, class: 'exact', integers: { lengths: (i, { n }) => (i * 5) % ((n ?? 0) + 1) } },
  { kernel: fixtures.argmaxRow, class: 'exact' },
  { kernel: fixtures.quantize, class: 'exact' },
  { kernel: fixtures.difference, class: 'exact' },
  { kernel: fixtures.twoLengths, class: 'exact', extents: (n) => ({ k: (n % 37) + 1 }) },
  { kernel: fixtures.window, class: 'exact', extents: () => ({ k: 3 }) },
  { kernel: fixtures.fourRows, class: 'reduction' },
  { kernel: fixtures.rowSum, class: 'exact' },
]

const lengths = [1, 2, 8, 15, 16, 17, 31, 64, 255, 256, 257, 1000, 1024, 1025, 3000, 9001]

let device: Device
let library: NativeLibrary
let entries: ReadonlyMap<string, KernelEntry>
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-fixtures-'))
  const files = generate(
    subjects.map(({ kernel }) => ({ ...kernel, types: Object.hasOwn(kernel.types, 'T') ? { T: ['f32', 'f16'] } : {} })),
  )
  await writeGenerated(folder, files)
  const native = await buildNative({ root })
  process.env.HEDDLE_NATIVE ??= native.folder
  const built = await buildKernels({ target: 'simt', root, generated: folder, outDir: join(folder, 'out') })
  device = openDevice('simt')
  const manifest = manifestSchema.parse(JSON.parse(files.get('manifest.json') ?? ''))
  library = loadKernels(device, built.library, manifest)
  entries = new Map(manifest.kernels.map((entry) => [entry.key, entry]))
})
afterAll(async () => {
  device?.close()
  await rm(folder, { recursive: true })
})

/** +-1 and +-2 in a fixed pattern: sums of thousands of them are exact, and no term hides. */
const draw = (i: number): number => [1, -2, 2, -1, 1, 1, -1, 2, -2, -1, 2][(i * 3 + (i >> 4)) % 11] ?? 0

const total = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1)

/** Reads a stored tensor back in logical order. */
function logical(tensor: TensorParam, stored: ArrayLike<number>, dims: Readonly<Record<string, number>>): number[] {
  const shape = tensor.dims.map((dim) => dims[dim] ?? 1)
  const env = emptyEnv(Object.fromEntries(tensor.layout.axes.map((axis, i) => [axis, shape[i] ?? 1])))
  const values: number[] = []
  forEachPoint(shape, (point) => {
    for (const [i, axis] of tensor.layout.axes.entries()) env.values.set(axis, point[i] ?? 0)
    values.push(stored[Number(evaluateExpr(tensor.layout.offset, env))] ?? Number.NaN)
  })
  return values
}

interface Outcome {
  readonly inputs: Readonly<Record<string, HostTensor>>
  /** Stored elements of each output. */
  readonly outputs: readonly { readonly tensor: TensorParam; readonly dtype: DType; readonly stored: ArrayLike<number> }[]
}

type Dims = Readonly<Record<string, number>>

/** Launches a kernel on inputs that `make` draws. */
async function launch(
  kernel: Kernel,
  entry: KernelEntry,
  dims: Dims,
  make: (tensor: string) => (i: number, dims: Dims) => number,
): Promise<Outcome> {
  const inputs: Record<string, HostTensor> = {}
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
    return { tensor, dtype, data, slice: { buffer: device.allocate(bytes), offset: 0, bytes } }
  })
  const program = device.program([
    {
      kind: 'kernel',
      label: entry.key,
      library,
      key: entry.key,
      buffers: buffers.map(({ slice }) => slice),
      dims: entry.dims.map((dim) => dims[dim] ?? 1),
      attrs: entry.attrs.map((attr) => attr.default),
    },
  ])
  const given = buffers.filter(({ tensor }) => tensor.access === 'in')
  const wanted = buffers.filter(({ tensor }) => tensor.access === 'out')
  const bytes = await program.run(
    given.map(({ slice, dtype, data }) => ({ to: slice, data: encodeNumbers(dtype, data) })),
    wanted.map(({ slice }) => slice),
  )
  program.release()
  for (const { slice } of buffers) slice.buffer.release()
  const outputs = wanted.map(({ tensor, dtype }, i) => ({ tensor, dtype, stored: decode(dtype, bytes[i] ?? new Uint8Array()) }))
  return { inputs, outputs }
}

/** Runs a case and says what is wrong with its outputs; nothing when they are right. */
async function check(
  { kernel, class: opClass, extents, integers }: Subject,
  entry: KernelEntry,
  m: number,
  n: number,
): Promise<string> {
  const dims = { m, n, ...extents?.(n) }
  const { inputs, outputs } = await launch(kernel, entry, dims, (tensor) => integers?.[tensor] ?? draw)
  const expected = evaluateKernel(kernel, inputs, dims)
  const complaints = outputs.map(({ tensor, dtype, stored }) => {
    const rule = tolerance({ dtype, class: opClass, length: n, scale: 1 })
    const result = compare(logical(tensor, stored, dims), roundTo(dtype, expected[tensor.name]?.data ?? []), rule)
    return result.passed ? '' : `${tensor.name} at ${m} x ${n}: ${result.summary}`
  })
  return complaints.filter((text) => text !== '').join('; ')
}

describe('fixture kernels on simt equal their IR', () => {
  const cases = subjects.flatMap((subject) =>
    Object.hasOwn(subject.kernel.types, 'T')
      ? (['f32', 'f16'] as const).map((T) => ({ subject, key: `${subject.kernel.name}__${T}` }))
      : [{ subject, key: subject.kernel.name }],
  )
  it.each(cases)('$key', async ({ subject, key }) => {
    const entry = entries.get(key)
    if (entry === undefined) throw new Error(`no kernel ${key}`)
    const complaints: string[] = []
    for (const n of lengths) complaints.push(await check(subject, entry, n > 2000 ? 3 : 9, n))
    complaints.push(await check(subject, entry, 700, 300))
    expect(complaints.filter((text) => text !== '')).toEqual([])
  })

  it('tell a wrong result from a right one', async () => {
    const entry = entries.get('transpose__f32')
    if (entry === undefined) throw new Error('no kernel')
    expect(
      await check(
        {
          kernel: {
            ...fixtures.transpose,
            body: fixtures.transpose.body.map((s) =>
              s.kind === 'store' ? { ...s, value: { kind: 'const', type: 'f32', value: 3 } } : s,
            ),
          },
          class: 'exact',
        },
        entry,
        2,
        3,
      ),
    ).toContain('y at 2 x 3')
  })
})

describe('the number of rows', () => {
  /** Values whose sum depends on the order of summation. */
  const wave = (i: number): number => Math.sin(i * 0.7) * 10 ** (i % 5)

  it.each(['f32', 'f16'] as const)('changes no bit of a row, though it changes the schedule (%s)', async (T) => {
    const entry = entries.get(`row_sum__${T}`)
    if (entry === undefined) throw new Error('no kernel')
    const sums = async (m: number, n: number) => (await launch(fixtures.rowSum, entry, { m, n }, () => wave)).outputs[0]?.stored
    for (const n of [300, 769, 1024]) {
      const few = Array.from((await sums(2, n)) ?? [])
      expect(Array.from((await sums(600, n)) ?? []).slice(0, 2)).toEqual(few)
      const inOrder = Array.from({ length: n }, (_, i) => Math.fround(wave(i))).reduce((a, b) => Math.fround(a + b), 0)
      expect(few[0], 'the order matters for these values').not.toBe(inOrder)
    }
  })
})

describe('launchers refuse what does not fit', () => {
  const attempt = async (dims: number[], bytes: readonly [number, number]): Promise<void> => {
    const slices = bytes.map((count) => ({ buffer: device.allocate(Math.max(count, 1)), offset: 0, bytes: count }))
    const program = device.program([
      { kind: 'kernel', label: 'transpose', library, key: 'transpose__f32', buffers: slices, dims, attrs: [] },
    ])
    await program.run([], [])
  }
  it.each<[string, number[], readonly [number, number]]>([
    ['transpose__f32: y needs 24 bytes, its buffer has 20', [2, 3], [24, 20]],
    ['transpose__f32: dimension m is 2147483648, allowed', [2 ** 31, 1], [24, 24]],
    ['transpose__f32: the size of x in bytes exceeds 64 bits', [2 ** 31 - 1, 2 ** 31 - 1], [24, 24]],
  ])('%s', async (message, dims, bytes) => {
    await expect(attempt(dims, bytes)).rejects.toThrow(message)
  })

  it('accept an empty problem without memory', async () => {
    await expect(attempt([0, 5], [0, 0])).resolves.toBeUndefined()
  })
})
