/**
 * The tensors a kernel or graph is timed on: floats of the usual spread, integers by the facts of the kernels that read them. Integers of
 * which no fact says what they may be are zeros, which lie in any tensor, and are named in the notes.
 */
import type { KernelEntry } from '../../emit/manifest.js'
import { dtypeInfo } from '../../ir/dtype.js'
import type { ValueInfo } from '../../runtime/bind.js'
import type { WeightTensor } from '../../runtime/session.js'
import { drawOf } from '../../verify/domains.js'
import { integer, normal, type Random, random } from '../../verify/random.js'
import type { Sequences } from '../../verify/sizes.js'
import { encodeNumbers } from '../../verify/storage.js'

/** Values drawn for a large tensor, which repeats them. */
const drawn = 1 << 14
/** Integers of int8 tensors as large as keep sums within 16 bits. */
const widest = 8

/** A kernel that reads a tensor, and what the tensor is to it. */
export interface Reader {
  readonly entry: KernelEntry
  readonly buffer: KernelEntry['buffers'][number]
  readonly dims: Readonly<Record<string, number>>
}

/** True if nothing says which integers a tensor may hold. */
export const isUnknown = ({ dtype }: Pick<ValueInfo, 'dtype'>, reader: Reader | undefined): boolean =>
  dtypeInfo[dtype].scalar === 'i32' && (reader === undefined || reader.entry.facts?.inputs[reader.buffer.name] === undefined)

/** @param elements of its buffer, which a layout may make more than its shape has */
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
