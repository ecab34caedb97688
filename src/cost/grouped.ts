/**
 * Price of a grouped matmul: the launches that group rows and copy those of the left factor, then the longer of moving its bytes once and
 * multiplying. Which matrices rows choose is data: the price takes as many of them as there are rows, each with an equal share, whose last tile is
 * padded (native/device/grouped_matmul.cuh).
 */
import { dtypeInfo } from '../ir/dtype.js'
import { resolveDType } from '../ir/instance.js'
import type { Kernel, StmtOf } from '../ir/kernel.js'
import type { GroupedMatmul } from '../schedule/grouped/grouped_matmul.js'
import type { MappedKernel } from '../schedule/mapped.js'
import type { CostDevice, PriceType } from './device.js'
import type { LaunchCost } from './launch.js'
import type { Sizes } from './sizes.js'
import { readsOf } from './template_reads.js'

/** Rows that are multiplied without being grouped, and those of a tile. */
const fewRows = 8
const [largeTile, smallTile] = [128, 64]
/** Rows per matrix from which on tiles are large. */
const manyRows = 96
const tileColumns = 192
const groupingThreads = 512
const copyThreads = 256

const product = (extents: readonly number[]): number => extents.reduce((size, extent) => size * extent, 1)

/** Sizes of a grouped matmul, its bytes, and the type at whose rate it multiplies. */
interface Work {
  readonly rows: number
  readonly n: number
  readonly k: number
  readonly matrices: number
  readonly bytesRead: number
  readonly bytesWritten: number
  readonly rate: PriceType
}

function workOf({ instance: { kernel, types } }: MappedKernel, grouped: GroupedMatmul, sizes: Sizes): Work {
  const extent = (dim: string | undefined): number => sizes.dims[dim ?? ''] ?? 1
  const rows = product(grouped.rows.map((axis) => extent(axis.dim)))
  const [n, k] = [extent(grouped.n), extent(grouped.k)]
  const paramOf = (name: string) => kernel.tensors.find((tensor) => tensor.name === name)
  const typeOf = (name: string) => resolveDType(paramOf(name)?.dtype ?? 'f32', types)
  const matrices = Math.min(rows, extent(paramOf(grouped.right.tensor)?.dims[0]))
  const reads = new Map(readsOf(withPlaces(grouped), sizes))
  reads.delete(grouped.accumulator)
  reads.set(grouped.left.tensor, rows * k)
  reads.set(grouped.right.tensor, matrices * n * k)
  let [bytesRead, bytesWritten] = [0, 0]
  for (const { name, access, dims, dtype } of kernel.tensors) {
    const size = product(dims.map(extent))
    const bytes = dtypeInfo[resolveDType(dtype, types)].bytes
    if (access === 'out') bytesWritten += size * bytes
    else bytesRead += Math.min(size, reads.get(name) ?? 0) * bytes
  }
  const [left, right] = [typeOf(grouped.left.tensor), typeOf(grouped.right.tensor)]
  const rate: PriceType = left === right && k % 8 === 0 && (left === 'f16' || left === 'bf16') ? left : 'f32'
  return { rows, n, k, matrices, bytesRead, bytesWritten, rate }
}

/** Launches of a grouped matmul, in order of execution. */
export function groupedCosts(
  mapped: MappedKernel,
  grouped: GroupedMatmul,
  sizes: Sizes,
  device: CostDevice,
): readonly LaunchCost[] {
  const { rows, n, k, matrices, bytesRead, bytesWritten, rate } = workOf(mapped, grouped, sizes)
  const { name } = mapped.instance.kernel
  const each = rows / Math.max(1, matrices)
  const tile = each >= manyRows ? largeTile : smallTile
  const isFew = rows <= fewRows
  const multiplied = isFew ? rows : matrices * Math.ceil(each / tile) * tile
  const moving = (bytesRead + bytesWritten) / device.bandwidth
  const multiplying = (2 * multiplied * n * k) / device.peak[rate]
  const main: LaunchCost = {
    ...base,
    name,
    bytesRead,
    bytesWritten,
    memory: bytesRead + bytesWritten,
    blocks: isFew ? Math.ceil(n / fewRows) * matrices : (multiplied / tile) * Math.ceil(n / tileColumns),
    threads: isFew ? 128 : tile * 2 + 32,
    flops: 2 * rows * n * k,
    bound: moving >= multiplying ? 'memory' : 'arithmetic',
    // Few rows have no pipeline to fill.
    seconds: (isFew ? device.launch : device.product) + Math.max(moving, multiplying),
  }
  return isFew ? [main] : [...orderCosts(name, rows, rate === 'f32' ? 0 : rows * k * dtypeInfo[rate].bytes, device), main]
}

const base = { program: 'matmul', rereads: false, cache: 0, near: 0, instructions: 0 } as const

/** Launches that group rows, and copy those of the left factor if there are `copied` bytes. */
function orderCosts(name: string, rows: number, copied: number, device: CostDevice): readonly LaunchCost[] {
  const choices = rows * dtypeInfo.i32.bytes
  const moved = (part: string, bytes: number) =>
    ({ ...base, name: `${name}_${part}`, bytesRead: bytes, bytesWritten: bytes, memory: 2 * bytes }) as const
  const grouping: LaunchCost = {
    ...moved('order', choices),
    blocks: 1,
    threads: groupingThreads,
    bound: 'launch',
    // One block reads the choices twice, each thread a share of them.
    seconds: device.launch + (2 + Math.ceil(rows / groupingThreads) / 8) * device.rates.access,
  }
  if (copied === 0) return [grouping]
  const gathering: LaunchCost = {
    ...moved('gather', copied),
    blocks: Math.ceil(copied / 16 / copyThreads),
    threads: copyThreads,
    bound: 'memory',
    seconds: device.launch + (2 * copied) / device.bandwidth,
  }
  return [grouping, gathering]
}

/** The epilogue, which also reads what the places of a row's factors depend on. */
const withPlaces = ({ epilogue, left, right }: GroupedMatmul): Kernel => ({
  ...epilogue,
  body: [
    ...[right.matrix, ...left.indices].map(
      (value, i): StmtOf<'let'> => ({ kind: 'let', name: `place ${i}`, type: 'i32', value }),
    ),
    ...epilogue.body,
  ],
})
