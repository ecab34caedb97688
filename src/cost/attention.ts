/**
 * Work of attention kernels for the cost model, besides the bytes that they move: multiplications in the tile that rows are padded to, weights, and
 * rows that a kernel computes while it loads them. The rules are those of native/device/attention.cuh. Queries are computed once per tile of
 * queries. Keys and values are computed again for each such tile and each head, by a main loop without warpgroup instructions, which waits for the
 * loads of each tile.
 */
import type { Expr } from '../ir/expr.js'
import type { AttentionKernel } from '../ir/template.js'
import { visit } from '../ir/walk.js'
import { operationsIn } from './computed.js'
import type { Sizes } from './sizes.js'
import { attentionExtents } from './template_reads.js'

/** Widths of rows in tiles; longer rows have no tile. */
const tileWidths = [16, 32, 64, 80, 96, 128, 192, 256] as const
/** Query rows of a block, and keys of a tile, of the loop that computes keys. */
const tileQueries = 64
const tileKeys = 64
const operands = ['query', 'key', 'value'] as const
/** Rounding an element and storing it to the tile. */
const storing = 2

export interface AttentionWork {
  /** Multiplications and additions of both matmuls, and the share of them that the tiles compute. */
  readonly flops: number
  readonly padded: number
  /** Weights, each an exponential. */
  readonly weights: number
  /** Instructions of threads for computed rows. */
  readonly instructions: number
  /** Number of times that a block waits for the loads of computed rows. */
  readonly waits: number
  readonly byWarps: boolean
}

export function attentionWork(kernel: AttentionKernel, sizes: Sizes): AttentionWork {
  const { batch, heads, queries, keys, headDim, valueDim } = attentionExtents(kernel, sizes)
  const weights = batch * heads * queries * keys
  const width = tileWidths.find((each) => each >= Math.max(headDim, valueDim)) ?? Math.max(headDim, valueDim)
  const blocks = batch * heads * Math.ceil(queries / tileQueries)
  const elements = { query: queries * headDim, key: keys * headDim, value: keys * valueDim }
  const times = { query: batch * heads, key: blocks, value: blocks }
  const computed = operands.filter((role) => kernel[role].element !== undefined)
  const instructions = computed.reduce(
    (sum, role) => sum + times[role] * elements[role] * instructionsOf(kernel[role].element),
    0,
  )
  const byWarps = computed.some((role) => role !== 'query')
  return {
    flops: 2 * weights * (headDim + valueDim),
    padded: (2 * width) / (headDim + valueDim),
    weights,
    instructions,
    waits: byWarps ? blocks * Math.ceil(keys / tileKeys) : 0,
    byWarps,
  }
}

/** Instructions per element of a computed row: its operations in float32, its loads, and those that store it. */
function instructionsOf(element: Expr | undefined): number {
  if (element === undefined) return 0
  let loads = 0
  visit(element, ({ kind }) => {
    loads += kind === 'load' ? 1 : 0
  })
  return operationsIn(element) + loads + storing
}
