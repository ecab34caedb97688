/**
 * Tiles of template kernels as data: what `heddle tune` measures of a matmul or of attention and a tuning file holds, as choice.ts has it
 * for row programs. Rules in native/device choose a tile where nothing was measured.
 */
import { z } from 'zod'
import type { DType } from '../ir/dtype.js'
import type { TemplateKernel } from '../ir/template.js'

const count = z.number().int().positive()

/** The names of native/device/matmul_choice.cuh, in its order. */
export const matmulTiles = [
  'rows',
  'few',
  'simple',
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
] as const

type MatmulTile = (typeof matmulTiles)[number]

export const tileSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('matmul'),
    tile: z.enum(matmulTiles),
    /** Blocks that divide k among them. */
    split: count.max(8),
  }),
  z.strictObject({
    kind: z.literal('attention'),
    /** Query rows of a block. */
    queries: count,
    /** Keys it meets at a time. */
    keys: count,
    /** Products of warpgroups, where the GPU has them. */
    warpgroups: z.boolean(),
  }),
])

export type TileChoice = z.infer<typeof tileSchema>
type AttentionChoice = TileChoice & { readonly kind: 'attention' }

/** A name for text and files: `mma_64x64_k2`, `queries128_keys64_warpgroups`. */
export function tileName(choice: TileChoice): string {
  if (choice.kind === 'matmul') return choice.split === 1 ? choice.tile : `${choice.tile}_k${choice.split}`
  return `queries${choice.queries}_keys${choice.keys}${choice.warpgroups ? '_warpgroups' : ''}`
}

/** The parts of k that tiles of each body are worth dividing among; others compute all of k. */
const splits: Readonly<Partial<Record<MatmulTile, readonly number[]>>> = {
  mma_64x32: [1, 2, 4, 8],
  mma_64x64: [1, 2, 4, 8],
  mma_128x96: [1, 2],
  cluster_64x64: [2, 4],
  cluster_64x96: [2, 3, 6],
  pair_128x128: [1, 2],
  pair_128x160: [1, 2],
}

/** What the rules take wherever it can win: for a few rows, and where no tensor core can compute. */
const hopeless: readonly MatmulTile[] = ['rows', 'few', 'simple']

const attentionChoices: readonly AttentionChoice[] = [
  { kind: 'attention', queries: 64, keys: 64, warpgroups: true },
  { kind: 'attention', queries: 128, keys: 64, warpgroups: true },
  { kind: 'attention', queries: 64, keys: 64, warpgroups: false },
  { kind: 'attention', queries: 128, keys: 64, warpgroups: false },
  { kind: 'attention', queries: 64, keys: 32, warpgroups: false },
  { kind: 'attention', queries: 64, keys: 128, warpgroups: false },
]

/** What a tile computes: the columns of a matmul and its k, or the elements of a head. */
export interface TileSize {
  readonly length: number
  readonly depth?: number | undefined
}

/** The types attention multiplies on tensor cores, and the heads. */
const tensorTypes: readonly DType[] = ['f16', 'bf16']
const tensorHeads: readonly number[] = [32, 64, 128]

/** Tiles worth measuring, each once, in a fixed order; the rules' own are among them. A device refuses those it has not. */
export function tileCandidates(kernel: TemplateKernel, dtype: DType, size: TileSize): TileChoice[] {
  const all: readonly TileChoice[] =
    kernel.kind === 'attention'
      ? attentionChoices
      : matmulTiles
          .filter((tile) => !hopeless.includes(tile))
          .flatMap((tile) => (splits[tile] ?? [1]).map((split): TileChoice => ({ kind: 'matmul', tile, split })))
  return all.filter((choice) => tileProblem(choice, kernel, dtype, size) === undefined)
}

/** Why a kernel cannot have a tile, in words; undefined when it can. `dtype` is what it multiplies. */
export function tileProblem(
  choice: TileChoice,
  kernel: TemplateKernel,
  dtype: DType,
  { length, depth }: TileSize,
): string | undefined {
  if (kernel.kind !== choice.kind) return `the kernel is ${kernel.kind}`
  if (choice.kind === 'matmul') {
    if (kernel.kind === 'matmul' && kernel.batch.length > 0) return 'matrices of a batch have tiles of their own'
    return depth === undefined ? 'a matmul is measured for columns and depth' : undefined
  }
  if (depth !== undefined) return 'attention has no depth'
  if (!tensorTypes.includes(dtype) || !tensorHeads.includes(length))
    return `tiles are for heads of ${tensorHeads.join(', ')} in 16 bits`
  const known = attentionChoices.some((other) => tileName(other) === tileName(choice))
  if (!known) return `allowed are ${attentionChoices.map(tileName).join(', ')}`
  if (choice.warpgroups && length !== 64) return 'products of warpgroups are for heads of 64'
  // They fit no registers.
  return choice.keys > 64 && length > 64 ? 'scores of so many keys do not fit beside such heads' : undefined
}

/** True if a choice is of a template kernel. */
export const isTile = <C extends { readonly kind: string }>(choice: C): choice is C & TileChoice =>
  choice.kind === 'matmul' || choice.kind === 'attention'

/** The type a template kernel multiplies: that of its left factor, or of its queries. */
export function operandOf(kernel: TemplateKernel): string {
  return kernel.kind === 'matmul' ? kernel.a.tensor : kernel.kind === 'attention' ? kernel.query.tensor : kernel.key.tensor
}
