/**
 * Price of a matmul whose rows are reduced: the main loop stores the results of groups of columns instead of the matmul, and a launch of its own
 * combines them.
 */
import { dtypeInfo } from '../ir/dtype.js'
import type { Instance } from '../ir/instance.js'
import type { MatmulKernel, ReducedRows } from '../ir/product.js'
import type { CostDevice } from './device.js'
import { kernelParts } from './kernel.js'
import type { LaunchCost } from './launch.js'
import { lengthOf, type Sizes } from './sizes.js'

const product = (extents: readonly number[]): number => extents.reduce((size, extent) => size * extent, 1)

/** Rows and columns of a tile, and its threads. */
const [tileRows, tileColumns, tileThreads] = [128, 128, 384]

/** Bytes that the main loop stores for the launch after it. */
export function sharedBytes({ rest, shared }: ReducedRows, sizes: Sizes): number {
  const dims = { ...sizes.dims }
  for (const [name, extent] of Object.entries(rest.computed ?? {})) dims[name] = lengthOf(extent, { ...sizes, dims })
  const bytes = shared.map((tensor) => product(tensor.dims.map((dim) => dims[dim] ?? 0)) * dtypeInfo.f32.bytes)
  return bytes.reduce((sum, each) => sum + each, 0)
}

/** The launches, in order of execution. @param main the price of the main loop */
export function reducedParts(
  kernel: MatmulKernel,
  reduced: ReducedRows,
  main: Pick<LaunchCost, 'bytesRead' | 'bytesWritten' | 'seconds'> & { readonly flops: number },
  types: Instance['types'],
  sizes: Sizes,
  device: CostDevice,
): readonly LaunchCost[] {
  const { bytesRead, bytesWritten, flops, seconds } = main
  const extent = (dim: string): number => sizes.dims[dim] ?? 0
  const memory = bytesRead + bytesWritten
  const tiles = Math.ceil(extent(kernel.m) / tileRows) * Math.ceil(extent(kernel.n) / tileColumns)
  const first: LaunchCost = {
    ...{ name: kernel.name, program: 'matmul', rereads: false, cache: 0, near: 0, instructions: 0 },
    ...{ bytesRead, bytesWritten, memory, flops, seconds },
    ...{ blocks: tiles * product(kernel.batch.map(extent)), threads: tileThreads },
    bound: memory / device.bandwidth >= seconds / 2 ? 'memory' : 'arithmetic',
  }
  return [first, ...kernelParts(reduced.rest, types, sizes, device)]
}
