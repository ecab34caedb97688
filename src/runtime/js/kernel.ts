/** Kernels of the `js` device: the lowered IR, evaluated over the buffers of a launch. */
import type { KernelEntry } from '../../emit/manifest/manifest.js'
import { environmentError, findingError, HeddleError } from '../../errors.js'
import type { PlannedKernel } from '../../fuse/planned_kernel.js'
import { dtypeInfo } from '../../ir/dtype.js'
import { evaluateKernel, type HostTensor } from '../../ir/evaluate.js'
import { evaluateMatmul, withFactors } from '../../ir/evaluate_product.js'
import { evaluateTemplate } from '../../ir/evaluate_template.js'
import { resolveDType } from '../../ir/instance.js'
import { integerFunction } from '../../ir/integer_function.js'
import type { Layout } from '../../ir/layout.js'
import { storedNumber } from '../../ir/store.js'
import { isTemplate } from '../../ir/template.js'
import { decode } from '../buffer.js'
import { encodeNumbers, roundTo } from '../numbers.js'

type Numbers = Readonly<Record<string, number>>
type Tensors = Readonly<Record<string, HostTensor>>
type Buffer = KernelEntry['buffers'][number]

/** An instance of a kernel, and the IR that it was generated from. */
export interface LoweredKernel {
  readonly entry: KernelEntry
  readonly kernel: PlannedKernel
}

export interface Launched {
  readonly label: string
  /** In the order of the entry, as are `dims` and `attrs`. */
  readonly buffers: readonly Uint8Array[]
  readonly dims: readonly number[]
  readonly attrs: readonly number[]
}

/** @throws environment `library.stale` if the IR has other tensors or attributes than the instance */
export function expectSame({ entry, kernel }: LoweredKernel): void {
  const [own, generated] = [kernel, { tensors: entry.buffers, attrs: entry.attrs }].map(({ tensors, attrs }) =>
    [...tensors.map(({ name, access }) => `${access} ${name}`), ...attrs.map(({ name }) => name)].join(', '),
  )
  if (own === generated) return
  throw environmentError('library.stale', `kernel ${entry.key} takes ${generated}, its spec now declares ${own}`, {
    hint: 'run heddle gen',
  })
}

/**
 * Runs a kernel over its buffers. Elements of integers that nothing stores keep their value, those of floats become NaN.
 * @throws finding `device.fault` for a read or write outside of a tensor
 */
export function runKernel(lowered: LoweredKernel, { label, buffers, dims, attrs }: Launched): void {
  const { entry, kernel } = lowered
  const sizes: Numbers = { ...entry.fixedDims, ...Object.fromEntries(entry.dims.map((name, i) => [name, dims[i] ?? 0])) }
  const values: Numbers = Object.fromEntries(entry.attrs.map(({ name, default: usual }, i) => [name, attrs[i] ?? usual]))
  const placed = entry.buffers.map((buffer, i) => ({
    buffer,
    bytes: buffers[i] ?? new Uint8Array(),
    shape: buffer.dims.map((name) => sizes[name] ?? 1),
    layout: kernel.tensors[i]?.layout,
  }))
  const inputs = Object.fromEntries(
    placed.flatMap((each) => (each.buffer.access === 'in' ? [[each.buffer.name, load(each)] as const] : [])),
  )
  const results = inside(label, () => evaluate(lowered, inputs, sizes, values))
  for (const each of placed) {
    const made = each.buffer.access === 'out' ? results[each.buffer.name] : undefined
    if (made !== undefined) store(each, made.data)
  }
}

/** Evaluates the IR. Computed factors of a matmul are rounded to their storage type, as they are in a generated kernel. */
function evaluate({ kernel, entry: { types } }: LoweredKernel, inputs: Tensors, dims: Numbers, attrs: Numbers): Tensors {
  if (!isTemplate(kernel)) return evaluateKernel(kernel, inputs, dims, attrs)
  if (kernel.kind !== 'matmul') return evaluateTemplate(kernel, inputs, dims, attrs)
  const made = withFactors(kernel, inputs, dims, attrs, (dtype, data) => roundTo(resolveDType(dtype, types), data))
  return evaluateMatmul(made.kernel, made.inputs, dims, attrs)
}

function inside<T>(label: string, run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (!(error instanceof HeddleError) || error.code !== 'evaluate.bounds') throw error
    throw findingError('device.fault', `${label}: ${error.message}`, { hint: error.hint, cause: error })
  }
}

/** A buffer of a launch. */
interface Placed {
  readonly buffer: Buffer
  readonly bytes: Uint8Array
  readonly shape: readonly number[]
  readonly layout: Layout | undefined
}

const sizeOf = (shape: readonly number[]): number => shape.reduce((product, extent) => product * extent, 1)

/** Bytes of a buffer's elements; memory may be longer. */
function used({ buffer, bytes, shape, layout }: Placed, isRow: boolean): Uint8Array {
  const size = dtypeInfo[buffer.dtype].bytes
  if (isRow || layout === undefined) return bytes.subarray(0, sizeOf(shape) * size)
  return bytes.subarray(0, bytes.byteLength - (bytes.byteLength % size))
}

/** Storage offset of an element by its place in row-major order; undefined for a row-major buffer. */
function offsets({ buffer, shape, layout }: Placed): ((flat: number) => number) | undefined {
  if (buffer.layout === 'row' || layout === undefined) return undefined
  const { axes } = layout
  const index = new Map(axes.map((axis, at) => [axis, at]))
  const dim = new Map(axes.map((axis, at) => [axis, axes.length + at]))
  const offset = integerFunction(layout.offset, { index, dim })
  const at = new Array<number>(axes.length).fill(0)
  return (flat) => {
    let rest = flat
    for (let axis = axes.length - 1; axis >= 0; axis--) {
      const extent = shape[axis] ?? 1
      at[axis] = rest % extent
      rest = Math.floor(rest / extent)
    }
    return offset([...at, ...shape])
  }
}

/** Elements of a buffer in row-major order. */
function load(placed: Placed): HostTensor {
  const { buffer, shape } = placed
  const offset = offsets(placed)
  const stored = decode(buffer.dtype, used(placed, offset === undefined))
  if (offset === undefined) return { data: Float64Array.from(stored), shape }
  return { data: Float64Array.from({ length: sizeOf(shape) }, (_, i) => stored[offset(i)] ?? Number.NaN), shape }
}

function store(placed: Placed, made: ArrayLike<number>): void {
  const { buffer, shape } = placed
  const { dtype } = buffer
  const offset = offsets(placed)
  const target = used(placed, offset === undefined)
  const stored = Float64Array.from(decode(dtype, target))
  const isFloat = dtypeInfo[dtype].scalar === 'f32' && dtype !== 'i8'
  for (let i = 0; i < sizeOf(shape); i++) {
    const value = made[i] ?? Number.NaN
    if (isFloat || !Number.isNaN(value)) stored[offset?.(i) ?? i] = storedNumber(dtype, value)
  }
  target.set(encodeNumbers(dtype, stored))
}
