/** Bytes of a launch: of memory, by different elements, and of caches, by the sectors that its warps move. */
import { dtypeInfo } from '../ir/dtype.js'
import type { Expr } from '../ir/expr.js'
import { resolveDType } from '../ir/instance.js'
import { plainExpr } from '../ir/print.js'
import { substitute } from '../ir/walk.js'
import type { MappedKernel } from '../schedule/mapped.js'
import type { Access } from './accesses.js'
import type { WalkRates } from './device.js'
import type { Sizes } from './sizes.js'
import type { Walks } from './walk.js'
import { placed, storedOf } from './writes.js'

export interface Traffic {
  /** Elements of tensors, in bytes: each once, or once in every pass that reads it again. */
  readonly bytesRead: number
  readonly bytesWritten: number
  /** Whole sectors that memory moves. */
  readonly memory: number
  /** Sectors that warps move from and to the shared cache, and from the memory of their multiprocessor. */
  readonly cache: number
  readonly near: number
}

/** Bytes that a thread has asked for before it needs the first. */
export const bytesAtOnce = (accesses: readonly (readonly Access[])[], unrolled: number): number =>
  Math.max(
    1,
    ...accesses.map((walk) =>
      walk.reduce((sum, { does, vec, dtype }) => sum + (does === 'read' ? vec * dtypeInfo[dtype].bytes : 0), 0),
    ),
  ) * unrolled

/**
 * @param resident tensors that an earlier launch of the same op has left in the shared cache
 * @param share of the blocks that run at once: their rows are what a cache has to hold between passes
 */
export function trafficOf(
  { instance: { kernel, types } }: Pick<MappedKernel, 'instance'>,
  walks: Walks,
  accesses: readonly (readonly Access[])[],
  sizes: Sizes,
  { rates, resident, share }: { readonly rates: WalkRates; readonly resident: ReadonlySet<string>; readonly share: number },
): Traffic {
  const isAgain = walks.rereads || walks.isAgain
  const passes = isAgain ? accesses : [accesses.flat()]
  const read = passes.flatMap((pass) => [...readOnce(pass)])
  const stored = storedOf(placed(kernel), sizes)
  let [bytesRead, bytesWritten, memory, cache, near] = [0, 0, 0, 0, 0]
  const footprint = readOnce(accesses.flat())
  const held = [...footprint.values()].reduce((sum, { bytes }) => sum + bytes, 0) * share
  const isHeld = held <= rates.cacheBytes / 2
  const seen = new Set<string>()
  for (const [name, { bytes, sectors }] of read) {
    bytesRead += bytes
    if (!resident.has(name) && !(seen.has(name) && isHeld)) memory += sectors
    seen.add(name)
  }
  for (const tensor of kernel.tensors) {
    if (tensor.access !== 'out') continue
    const { bytes } = dtypeInfo[resolveDType(tensor.dtype, types)]
    const size = tensor.dims.reduce((total, dim) => total * (sizes.dims[dim] ?? 1), 1)
    const elements = Math.min(size, stored.get(tensor.name) ?? size)
    bytesWritten += elements * bytes
    const stores = accesses.flat().filter((each) => each.does === 'written' && each.tensor.name === tensor.name)
    const sector = Math.max(bytes, Math.min(...stores.map(({ least }) => least)))
    memory += Math.min(size * bytes, elements * (Number.isFinite(sector) ? sector : bytes))
  }
  for (const walk of accesses) {
    for (const access of new Map(walk.map((each) => [exactly(each), each])).values()) {
      const moved = access.elements * access.moved
      const isNear = access.does === 'read' && access.different * dtypeInfo[access.dtype].bytes <= rates.nearBytes
      if (isNear) near += moved
      else cache += moved
    }
  }
  return { bytesRead, bytesWritten, memory, cache, near }
}

const exactly = ({ does, tensor, indices }: Access): string => [does, tensor.name, ...indices.map(plainExpr)].join(' ')

/** Bytes of different elements that are read of each tensor, and of their sectors, at most those of the tensor. */
function readOnce(accesses: readonly Access[]): ReadonlyMap<string, { readonly bytes: number; readonly sectors: number }> {
  const known = new Set<string>()
  const totals = new Map<string, { bytes: number; sectors: number; most: number }>()
  for (const access of accesses) {
    if (access.does !== 'read' || known.has(likeness(access))) continue
    known.add(likeness(access))
    const { bytes } = dtypeInfo[access.dtype]
    const { name } = access.tensor
    const total = totals.get(name) ?? { bytes: 0, sectors: 0, most: access.size * bytes }
    total.bytes += access.different * bytes
    total.sectors += access.different * Math.max(bytes, access.least)
    totals.set(name, total)
  }
  return new Map(
    [...totals].map(([name, { bytes, sectors, most }]) => [
      name,
      { bytes: Math.min(bytes, most), sectors: Math.min(sectors, most) },
    ]),
  )
}

/** Key of the elements that a load reads: loops of one length read the same ones, whatever the names of their indices. */
function likeness({ tensor, indices, loops, axes }: Access): string {
  const renamed = new Map<string, Expr>(
    loops.flatMap(({ index, count }) =>
      axes.has(index) ? [] : [[index, { kind: 'index', type: 'i32', name: `#${count}` } as const]],
    ),
  )
  return [tensor.name, ...indices.map((at) => plainExpr(substitute(at, renamed)))].join(' ')
}
