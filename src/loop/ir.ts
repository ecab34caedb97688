/**
 * Loop IR: the loops of a kernel, with the owner of each, the registers and the shared memory they use, and the loads, stores and combinations in
 * them. `lower` makes it of the program of a schedule, the passes in src/loop/passes place loads and checks, and emission prints it.
 *
 * The work of a kernel is divided among threads, teams or blocks. All threads of a row's team run it together. A scalar is one per thread. A loop
 * owned by lanes divides the chunks of a row among them, a loop owned by vectors runs over the elements of a chunk, and all lanes meet where something
 * is combined across them. A loop owned by slots divides rows among the threads that share a chunk of columns, a loop owned by the grid divides the
 * chunks of a tensor among blocks, and a loop owned by a block divides the chunks of a tile in shared memory among its threads.
 */
import type { Expr } from '../ir/expr.js'
import type { Loop as Counted } from '../schedule/normalise/normal.js'
import type * as nodes from './nodes.js'

export type * from './nodes.js'

/**
 * The work of a kernel: a share is a point of the axes with a chunk, a tile, or none. A thread, a team or a block has one share, the blocks of a
 * cluster share one, and several teams of a grid.
 */
export interface Work {
  readonly kind: 'work'
  readonly owner: 'thread' | 'team' | 'block' | 'cluster' | 'grid'
  /** Outermost first. */
  readonly digits: readonly nodes.Digit[]
  /** Threads of a block, if each has a share and no argument of the kernel says it. */
  readonly threads?: number
  readonly body: readonly Loop[]
}

/** The body for a chunk in which no piece of its row ends. Its thread is done afterwards; others go on. */
export interface OnePiece {
  readonly kind: 'piece'
  /** Index variable of the chunk's first element in the body. */
  readonly index: string
  /** Index of the loop that the chunk is a part of. */
  readonly loop: string
  /** Ends of pieces. */
  readonly bounds: readonly Expr[]
  /** Condition of the whole chunk. */
  readonly when?: Expr
  readonly body: readonly Loop[]
}

/** Chunks of a tile in shared memory along its columns, divided among the threads of a block. */
export interface TileLoop {
  readonly kind: 'for'
  readonly owner: 'block'
  readonly rows: Counted
  readonly columns: Counted
  /** Tiles that are read. */
  readonly tiles: readonly string[]
  /** True if chunks of tiles with all columns may go on from one row to the next. */
  readonly isRun: boolean
  readonly body: readonly Loop[]
}

/** Chunks of a row, or single elements, divided among the lanes of a team. */
export interface LaneLoop {
  readonly kind: 'for'
  readonly owner: 'lane'
  readonly index: string
  readonly length: Expr
  readonly step: 'chunk' | 'element'
  readonly walk: nodes.Walk
  /** True if all lanes run equally many iterations, since they meet in each. */
  readonly together: boolean
  /** True if a few iterations are unrolled, so that their loads are in flight together. */
  readonly unrolled: boolean
  /** True for columns that are as far apart as a tile has lanes where rows are not whole, so that neighbouring lanes have neighbouring columns. */
  readonly apart?: boolean
  readonly body: readonly Loop[]
}

/**
 * Iterations divided among threads: rows among the slots of a chunk of columns, or the chunks of a tensor among the threads of a grid. The chunks that
 * a thread loads in a few iterations are in flight together.
 */
export interface DividedLoop {
  readonly kind: 'for'
  readonly owner: 'slot' | 'grid'
  /** Outermost first. The chunks of a grid lie along the last. */
  readonly loops: readonly Counted[]
  readonly step: 'chunk' | 'element'
  /** Condition of an iteration, the same for the elements of its chunk. */
  readonly when?: Expr
  /** Loads of chunks come first. */
  readonly body: readonly Loop[]
}

/** Elements of a chunk, unrolled. */
export interface VectorLoop {
  readonly kind: 'for'
  readonly owner: 'vector'
  readonly index: string
  readonly body: readonly Loop[]
}

/** Statements for elements that exist. In the fast version of a row all do. */
export interface IfExists {
  readonly kind: 'exists'
  readonly whole: boolean
  readonly body: readonly Loop[]
}

/** Scalar that is true in the version for whole rows. */
export const wholeFlag = 'whole rows'

/** Two versions of what follows: one for rows in which every chunk is full and aligned, and one for all others. */
export interface Version {
  readonly kind: 'version'
  /** Lengths, and lengths of parts, that must be multiples of the width; undefined for one that is not known yet. */
  readonly lengths: readonly (Expr | undefined)[]
  /** Lengths that are multiples of the width by facts, so that they are not tested. */
  readonly stated: readonly Expr[]
  readonly aligned: readonly nodes.Access[]
  /** Names of offsets that are multiples of the width, as products of such a length: their rows are aligned if their tensors are. */
  readonly multiples: ReadonlySet<string>
  /** True if, in the version for other rows, the elements of a chunk are as far apart as a warp has lanes. */
  readonly apart?: boolean
  /** True if elements that lie apart, or columns, stay together in pairs where rows of such a version have an even length. */
  readonly pairs?: boolean
  /** True if each thread tests that its chunk is full, in place of lengths: chunks of a row that begins with its tensors. */
  readonly ofChunk?: boolean
  readonly body: readonly Loop[]
}

export type Loop =
  | Work
  | OnePiece
  | LaneLoop
  | DividedLoop
  | VectorLoop
  | TileLoop
  | IfExists
  | Version
  | nodes.Let
  | nodes.Offset
  | nodes.Buffer
  | nodes.Copy
  | nodes.Held
  | nodes.Prefetch
  | nodes.Request
  | nodes.CountPlaces
  | nodes.Compute
  | nodes.Groups
  | nodes.Fill
  | nodes.Accumulator
  | nodes.Accumulate
  | nodes.Rescale
  | nodes.Combine
  | nodes.Announce
  | nodes.Exchange
  | nodes.StoreChunk
  | nodes.Store
  | nodes.Shared
  | nodes.Put
  | nodes.Barrier
  | nodes.Search
  | nodes.Call
  | nodes.Narrow
  | nodes.Tile
  | nodes.FillTile

/** Statements inside a node. */
export const bodyOf = (loop: Loop): readonly Loop[] => ('body' in loop ? loop.body : [])

/** Rewrites nodes from the inside out; `f` returns the replacement of a node. */
export const mapLoops = (loops: readonly Loop[], f: (loop: Loop) => readonly Loop[]): readonly Loop[] =>
  loops.flatMap((loop) => f('body' in loop ? { ...loop, body: mapLoops(loop.body, f) } : loop))

/** Calls `visit` for every node, in order of execution. */
export function eachLoop(loops: readonly Loop[], visit: (loop: Loop) => void): void {
  for (const loop of loops) {
    visit(loop)
    eachLoop(bodyOf(loop), visit)
  }
}
