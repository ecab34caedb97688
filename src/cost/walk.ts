/**
 * Loops of a mapped kernel, in the one form that prices are computed from: walks over elements, each with its loops, the order in which neighbouring
 * threads take elements, and the accesses and values of an element. All kinds of programs are read into it, and nothing after it knows them.
 */
import type { Expr } from '../ir/expr.js'
import type { ChunkForm } from './chunk_forms.js'

/** A loop with the number of its iterations. */
export interface Counted {
  readonly index: string
  readonly count: number
}

/** An access that a walk makes for each of its elements, with the elements of one instruction. */
export interface WalkAccess {
  readonly tensor: string
  readonly indices: readonly Expr[]
  readonly vec: number
  /** Form of its chunks; packs by default. */
  readonly form?: ChunkForm
  /** Consecutive elements that it makes for each of the walk, from `indices` on; one by default. */
  readonly factor?: number
  /** Loops of neighbouring threads, the fastest first, where they differ from those of the walk. */
  readonly order?: readonly Counted[]
}

/** Work that is done once for each combination of the loops' indices. */
export interface Walk {
  /** Outermost first: those of threads, then the serial ones of a thread. */
  readonly loops: readonly Counted[]
  /** Loops of neighbouring threads, the fastest first. */
  readonly order: readonly Counted[]
  /** Consecutive elements of the first loop of `order` that one thread takes. */
  readonly vec: number
  /** Indices of loops that one thread runs. */
  readonly serial: readonly string[]
  /** Loads in chunks, and staged ones. */
  readonly reads: readonly WalkAccess[]
  /** Values of an element, whose own loads are made one by one. */
  readonly values: readonly Expr[]
  readonly stores: readonly WalkAccess[]
  /** Elements of rows that the walk computes, by row: indices of loads may be among them. */
  readonly rows?: ReadonlyMap<string, Expr>
  /** Instructions of an element in addition to its values, such as those of a reduction. */
  readonly extra: number
  /** Instructions of a thread for each of its chunks: of its loop, or of finding its place. */
  readonly perChunk: number
  /** Axes of the kernel, which are different loops whatever their extents. */
  readonly axes: ReadonlySet<string>
  /** True if a later walk, or a store, awaits its results. */
  readonly isAwaited: boolean
}

/** The walks of one launch, by the sizes for which it is priced. */
export interface Walks {
  readonly walks: readonly Walk[]
  readonly blocks: number
  /** Threads of a block. */
  readonly threads: number
  /** Loads that a thread makes before it needs the first. */
  readonly unrolled: number
  /** True if each walk reads its tensors again, since a thread keeps nothing between them. */
  readonly isAgain: boolean
  /** True if rows exceed the registers and are read in every pass. */
  readonly rereads: boolean
}

/** Iterations of loops, one in the other. */
export const product = (loops: readonly Counted[]): number => loops.reduce((all, { count }) => all * count, 1)

/** Blocks that take `each` of the work. */
export const blocksOf = (work: number, each: number): number => Math.max(1, Math.ceil(work / each))

/** Instructions of a loop for each of its iterations. */
export const loopInstructions = 2
