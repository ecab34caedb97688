/**
 * Tiles of template kernels as data: `heddle tune` measures them for a matmul or attention, and a tuning file stores them, as choice.ts does for
 * row programs. Rules in native/device choose a tile where no measurement exists.
 */
import { z } from 'zod'
import type { DType } from '../ir/dtype.js'
import type { MatmulKernel } from '../ir/product.js'
import type { TemplateKernel } from '../ir/template.js'

const count = z.number().int().positive()

/** Names of native/device/matmul_choice.cuh, in the same order. */
export const matmulTiles = [
  'rows',
  'few',
  'simple',
  'fma_16x64',
  'fma_64x64',
  'fma_64x128',
  'fma_128x128',
  'mma_64x32_deep',
  'mma_64x32',
  'mma_64x64',
  'mma_128x96',
  'cluster_64x64',
  'cluster_64x96',
  'single_128x64',
  'single_128x96',
  'single_128x128',
  'pair_128x128',
  'pair_128x160',
  'pair_128x192',
  'turns_128x128',
  'turns_128x160',
  'turns_128x192',
  'tall_128x128',
  'tall_256x128',
] as const

type MatmulTile = (typeof matmulTiles)[number]

export const tileSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('matmul'),
    tile: z.enum(matmulTiles),
    /** Number of blocks that divide k (split-k). */
    split: count.max(8),
  }),
  z.strictObject({
    kind: z.literal('attention'),
    /** Query rows per block. */
    queries: count,
    /** Keys per step. */
    keys: count,
    /** True for matmuls by warpgroups, on GPUs that have them. */
    warpgroups: z.boolean(),
  }),
])

export type TileChoice = z.infer<typeof tileSchema>
type AttentionChoice = TileChoice & { readonly kind: 'attention' }

/** Name of a tile for sources and files: `mma_64x64_k2`, `queries128_keys64_warpgroups`. */
export function tileName(choice: TileChoice): string {
  if (choice.kind === 'matmul') return choice.split === 1 ? choice.tile : `${choice.tile}_k${choice.split}`
  return `queries${choice.queries}_keys${choice.keys}${choice.warpgroups ? '_warpgroups' : ''}`
}

/** Splits of k worth measuring for the tiles of each body; other tiles compute all of k. */
const splits: Readonly<Partial<Record<MatmulTile, readonly number[]>>> = {
  fma_16x64: [1, 2, 4, 8],
  fma_64x64: [1, 2, 4, 8],
  fma_64x128: [1, 2, 4, 8],
  mma_64x32: [1, 2, 4, 8],
  mma_64x64: [1, 2, 4, 8],
  mma_128x96: [1, 2],
  cluster_64x64: [2, 4],
  cluster_64x96: [2, 3, 6],
  pair_128x128: [1, 2],
  pair_128x160: [1, 2],
  tall_128x128: [1, 2, 4],
  tall_256x128: [1, 2, 4],
}

/** Tiles that the rules use wherever they can win: for a few rows, and where no tensor core can compute. */
const hopeless: readonly MatmulTile[] = ['rows', 'few', 'simple']

/** Tiles of plain multiply-adds, which serve float32 only, as others serve only types that tensor cores multiply. */
const floatTiles: readonly MatmulTile[] = ['fma_16x64', 'fma_64x64', 'fma_64x128', 'fma_128x128']

const attentionChoices: readonly AttentionChoice[] = [
  { kind: 'attention', queries: 64, keys: 64, warpgroups: true },
  { kind: 'attention', queries: 128, keys: 64, warpgroups: true },
  { kind: 'attention', queries: 64, keys: 64, warpgroups: false },
  { kind: 'attention', queries: 128, keys: 64, warpgroups: false },
  { kind: 'attention', queries: 64, keys: 32, warpgroups: false },
  { kind: 'attention', queries: 64, keys: 128, warpgroups: false },
]

/** Size of a tile's problem: the columns of a matmul and its k, or the elements of a head. */
export interface TileSize {
  readonly length: number
  readonly depth?: number | undefined
}

/** Data types and head sizes that attention multiplies on tensor cores. */
const tensorTypes: readonly DType[] = ['f16', 'bf16']
const tensorHeads: readonly number[] = [32, 64, 128]

/** Tiles worth measuring, each once, in a fixed order, including those of the rules. A device refuses tiles that it does not support. */
export function tileCandidates(kernel: TemplateKernel, dtype: DType, size: TileSize): TileChoice[] {
  const all: readonly TileChoice[] =
    kernel.kind === 'attention'
      ? attentionChoices
      : matmulTiles
          .filter((tile) => !hopeless.includes(tile))
          .flatMap((tile) => (splits[tile] ?? [1]).map((split): TileChoice => ({ kind: 'matmul', tile, split })))
  return all.filter((choice) => tileProblem(choice, kernel, dtype, size) === undefined)
}

/** Reason why the tiles of a matmul cannot be chosen; undefined if they can. */
export function ownTiles({ batch, reduced }: MatmulKernel): string | undefined {
  if (batch.length > 0) return 'batched matmuls have their own tiles'
  return reduced === undefined ? undefined : 'matmuls whose rows are reduced have their own tiles'
}

/** Reason, in words, why a kernel cannot have a tile; undefined if it can. `dtype` is the type of its operands. */
export function tileProblem(
  choice: TileChoice,
  kernel: TemplateKernel,
  dtype: DType,
  { length, depth }: TileSize,
): string | undefined {
  if (kernel.kind !== choice.kind) return `the kernel is ${kernel.kind}`
  if (choice.kind === 'matmul') {
    const own = kernel.kind === 'matmul' ? ownTiles(kernel) : undefined
    if (own !== undefined) return own
    const isFloat = floatTiles.includes(choice.tile)
    if (isFloat !== (dtype === 'f32')) return isFloat ? 'tiles of multiply-adds are for f32' : 'tensor cores do not multiply f32'
    return depth === undefined ? 'a matmul is measured for columns and depth' : undefined
  }
  if (depth !== undefined) return 'attention has no depth'
  if (!tensorTypes.includes(dtype) || !tensorHeads.includes(length))
    return `tiles are for heads of ${tensorHeads.join(', ')} in 16 bits`
  const known = attentionChoices.some((other) => tileName(other) === tileName(choice))
  if (!known) return `expected one of ${attentionChoices.map(tileName).join(', ')}`
  if (choice.warpgroups && length !== 64) return 'matmuls by warpgroups need heads of 64'
  // They do not fit in registers.
  return choice.keys > 64 && length > 64
    ? 'scores of more than 64 keys do not fit in registers beside heads of more than 64 elements'
    : undefined
}

/** True if a choice is one of a template kernel. */
export const isTile = <C extends { readonly kind: string }>(choice: C): choice is C & TileChoice =>
  choice.kind === 'matmul' || choice.kind === 'attention'

/** Operand whose type a template kernel multiplies: its left operand, or its queries. */
export function operandOf(kernel: TemplateKernel): string {
  return kernel.kind === 'matmul' ? kernel.a.tensor : kernel.kind === 'attention' ? kernel.query.tensor : kernel.key.tensor
}
