/**
 * The memory of one case: its buffers in one block with guard bands between them. Inputs hold their values, outputs and the padding of
 * layouts are poisoned, and an output that updates an input is that input's buffer.
 */
import type { KernelEntry } from '../emit/manifest/manifest.js'
import { type DType, dtypeInfo } from '../ir/dtype.js'
import type { HostTensor } from '../ir/evaluate.js'
import { decode } from '../runtime/buffer.js'
import { findLayout, type Layouts, layoutSize } from '../runtime/layouts.js'
import { encodeNumbers } from '../runtime/numbers.js'

type Tensors = Readonly<Record<string, HostTensor>>

/** Address multiple the pool and the vector units work with. */
const alignment = 256
const guardBytes = 256
export const guardByte = 0xa5

/** NaN in every float type; an integer no op returns. */
export const poisonByte = (dtype: DType): number => (dtypeInfo[dtype].scalar === 'f32' && dtype !== 'i8' ? 0xff : 0x80)

/** A buffer of a case in its block. */
export interface Placed {
  readonly buffer: KernelEntry['buffers'][number]
  readonly shape: readonly number[]
  /** Position in the block. */
  readonly offset: number
  readonly bytes: number
}

/** Lays out the buffers of a case: guard, buffer, guard, buffer, ..., guard. */
export function place(entry: KernelEntry, dims: Readonly<Record<string, number>>, shift: number, layouts: Layouts) {
  let end = guardBytes
  const known = new Map<string, Placed>()
  const placed = entry.buffers.map((buffer): Placed => {
    const before = known.get(buffer.updates ?? '')
    if (before !== undefined) return { ...before, buffer }
    const shape = buffer.dims.map((name) => dims[name] ?? 1)
    const element = dtypeInfo[buffer.dtype].bytes
    const offset = Math.ceil(end / alignment) * alignment + shift * element
    const bytes = layoutSize(findLayout(layouts, buffer.layout, shape.length), shape) * element
    end = offset + bytes + guardBytes
    const made = { buffer, shape, offset, bytes }
    known.set(buffer.name, made)
    return made
  })
  return { placed, bytes: end }
}

/** Storage offset, in elements, of logical element i of a buffer; the identity for row-major buffers. */
export function elementOffset({ buffer, shape }: Placed, layouts: Layouts): (flat: number) => number {
  if (buffer.layout === 'row') return (flat) => flat
  const { axes, offset } = findLayout(layouts, buffer.layout, shape.length)
  const extents = Object.fromEntries(axes.map((axis, i) => [axis, shape[i] ?? 1]))
  // One record serves all elements: a large case has hundreds of thousands.
  const index: Record<string, number> = {}
  return (flat) => {
    let rest = flat
    for (let i = axes.length - 1; i >= 0; i--) {
      const extent = shape[i] ?? 1
      index[axes[i] ?? ''] = rest % extent
      rest = Math.floor(rest / extent)
    }
    return offset(index, extents)
  }
}

/** The bytes of a buffer that holds the values in its layout. */
export function store(placed: Placed, values: ArrayLike<number>, layouts: Layouts): Uint8Array {
  const { dtype, layout } = placed.buffer
  if (layout === 'row') return encodeNumbers(dtype, values)
  // Padding is poisoned as well: no result may depend on it.
  const stored = new Float64Array(decode(dtype, new Uint8Array(placed.bytes).fill(poisonByte(dtype))))
  const offset = elementOffset(placed, layouts)
  for (let i = 0; i < values.length; i++) stored[offset(i)] = values[i] ?? 0
  return encodeNumbers(dtype, stored)
}

export function load(placed: Placed, block: Uint8Array, layouts: Layouts): ArrayLike<number> {
  const raw = decode(placed.buffer.dtype, block.subarray(placed.offset, placed.offset + placed.bytes))
  // Poisoned int8 is one step below the smallest result, which a tolerance of one step would accept.
  const stored = placed.buffer.dtype === 'i8' ? new Float64Array(raw).map((value) => (value === -128 ? Number.NaN : value)) : raw
  if (placed.buffer.layout === 'row') return stored
  const offset = elementOffset(placed, layouts)
  const length = placed.shape.reduce((product, extent) => product * extent, 1)
  return new Float64Array(length).map((_, i) => stored[offset(i)] ?? Number.NaN)
}

/** The block before the run: guards, inputs as stored, outputs poisoned. @param poison byte for all outputs; by default chosen by type */
export function initialBlock(
  placed: readonly Placed[],
  bytes: number,
  inputs: Tensors,
  layouts: Layouts,
  poison?: number,
): Uint8Array {
  const block = new Uint8Array(bytes).fill(guardByte)
  for (const each of placed) {
    const input = inputs[each.buffer.name]
    if (each.buffer.access === 'in' && input !== undefined) block.set(store(each, input.data, layouts), each.offset)
    else if (each.buffer.updates === undefined)
      block.fill(poison ?? poisonByte(each.buffer.dtype), each.offset, each.offset + each.bytes)
  }
  return block
}

/** The first byte outside the outputs that the run changed, in words. */
export function findTrespass(before: Uint8Array, after: Uint8Array, outputs: readonly Placed[], placed: readonly Placed[]) {
  const inside = (byte: number, list: readonly Placed[]) =>
    list.find(({ offset, bytes }) => byte >= offset && byte < offset + bytes)
  for (let byte = 0; byte < before.length; byte++) {
    if (before[byte] === after[byte]) continue
    const output = inside(byte, outputs)
    if (output !== undefined) {
      // The run may change the whole output.
      byte = output.offset + output.bytes - 1
      continue
    }
    const input = inside(byte, placed)
    if (input !== undefined) return `input ${input.buffer.name} was overwritten at byte ${byte - input.offset}`
    const near = placed.findLast(({ offset }) => offset <= byte)
    if (near === undefined) return `guard band before the first buffer was overwritten at byte ${byte}`
    return `guard band after ${near.buffer.name} was overwritten, ${byte - near.offset - near.bytes} bytes past its end`
  }
  return undefined
}
