/**
 * Tensors for timing a kernel or graph: normally distributed floats, and integers by the facts of the kernels that read them. Integers
 * without a fact about their range are zeros, which are valid indices of any tensor, and are named in the notes.
 */
import type { KernelEntry } from '../../emit/manifest/manifest.js'
import { dtypeInfo } from '../../ir/dtype.js'
import type { ValueInfo } from '../../runtime/bind.js'
import { encodeNumbers } from '../../runtime/numbers.js'
import type { WeightTensor } from '../../runtime/session.js'
import { drawOf } from '../../verify/domains.js'
import { integer, normal, type Random, random } from '../../verify/random.js'
import type { Sequences } from '../../verify/sizes.js'

/** Number of random values; a larger tensor repeats them. */
const drawn = 1 << 14
/** Largest magnitude of int8 values, chosen to keep sums within 16 bits. */
const widest = 8

/** A kernel that reads a tensor, with its buffer and dimensions. */
export interface Reader {
  readonly entry: KernelEntry
  readonly buffer: KernelEntry['buffers'][number]
  readonly dims: Readonly<Record<string, number>>
}

/** True for an integer tensor whose range no fact states. */
export const isUnknown = ({ dtype }: Pick<ValueInfo, 'dtype'>, reader: Reader | undefined): boolean =>
  dtypeInfo[dtype].scalar === 'i32' && (reader === undefined || reader.entry.facts?.inputs[reader.buffer.name] === undefined)

/** @param elements of its buffer, which a layout may make larger than its shape */
export function makeTensor(
  name: string,
  info: ValueInfo,
  elements: number,
  reader: Reader | undefined,
  sequences: Sequences,
): WeightTensor {
  const { dtype, shape, layout } = info
  const next = random(`bench ${name}`)
  const pattern = encodeNumbers(dtype, values(next, info, elements, reader, sequences))
  const data = new Uint8Array(elements * dtypeInfo[dtype].bytes)
  for (let at = 0; at < data.byteLength; at += pattern.byteLength) data.set(pattern.subarray(0, data.byteLength - at), at)
  return { dtype, shape, data, ...(layout === 'row' ? {} : { layout }) }
}

function values(
  next: Random,
  info: ValueInfo,
  elements: number,
  reader: Reader | undefined,
  sequences: Sequences,
): ArrayLike<number> {
  if (isUnknown(info, reader)) return [0]
  const value = (): number => (info.dtype === 'i8' ? integer(next, -widest, widest) : normal(next))
  const domain = reader === undefined ? undefined : reader.entry.facts?.inputs[reader.buffer.name]
  const draw = reader === undefined ? undefined : drawOf(reader.buffer, domain, sequences)
  if (draw !== undefined && reader !== undefined) return draw({ next, value, dims: reader.dims, shape: info.shape })
  return Float64Array.from({ length: Math.min(elements, drawn) }, value)
}
