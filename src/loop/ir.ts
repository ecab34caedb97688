/**
 * Loop IR: the loops of one row of a kernel, with the owner of each, the registers and the shared memory they use, and the loads, stores and
 * combinations in them. `lower` makes it of the steps of a schedule, the passes in src/loop/passes place loads and checks, and emission prints it.
 *
 * All threads of a row's team run it together. A scalar is one per thread. A loop owned by lanes divides the chunks of a row among them, a loop
 * owned by vectors runs over the elements of a chunk, and all lanes meet where something is combined across them. A loop owned by slots divides rows
 * among the threads that share a chunk of columns, and a loop owned by the grid divides the chunks of a tensor among blocks.
 */
import type { ScalarType } from '../ir/dtype.js'
import type { Expr, ExprOf } from '../ir/expr.js'
import type { StmtOf } from '../ir/kernel.js'
import type { UserMonoid } from '../ir/user_monoid.js'
import type { UserRecurrence } from '../ir/user_recurrence.js'
import type { Loop as Counted, FoldedState, PassStmt, SharedRow, Threshold } from '../schedule/normalise/normal.js'

/**
 * Way in which threads share the chunks of a row: all at once, kept in registers; one after the other; a single chunk per thread; a chunk of columns
 * for several threads, which divide the rows; or parts of a tensor for each block.
 */
export type Walk = 'kept' | 'reread' | 'single' | 'columns' | 'parts'

/** Elements that a register value has: one, those of a chunk, or those of all chunks of a lane. */
export type Shape = 'element' | 'chunk' | 'row'

export type Monoid = StmtOf<'reduce'>['monoid'] | UserMonoid | UserRecurrence

/** A load or store of consecutive elements along a loop. */
export interface Access {
  readonly tensor: string
  readonly indices: readonly Expr[]
  /** Index of the loop. */
  readonly index: string
  /** Number of consecutive elements from index 0 on. */
  readonly run: number
  /** Name of the offset of the row's first element, if the row is one run that does not start at element 0. */
  readonly start?: string
  /** Set in loops over rows, whose offset is computed at the access: `packed` if each row begins where the one before ends. */
  readonly rows?: 'packed' | 'apart'
  /** True if every chunk is full and aligned in the fast version of the row. */
  readonly whole: boolean
}

/** Chunks of a row, or single elements, divided among the lanes of a team. */
export interface LaneLoop {
  readonly kind: 'for'
  readonly owner: 'lane'
  readonly index: string
  readonly length: Expr
  readonly step: 'chunk' | 'element'
  readonly walk: Walk
  /** True if all lanes run equally many iterations, since they meet in each. */
  readonly together: boolean
  /** True if a few iterations are unrolled, so that their loads are in flight together. */
  readonly unrolled: boolean
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

export interface ChunkValue {
  /** True if it is a row value of the kernel, so that it has a name. */
  readonly named: boolean
  /** Tensor that it is an element of. */
  readonly tensor?: string | undefined
  /** True if it is 0 for a chunk without elements. */
  readonly masked: boolean
}

/** A scalar. */
export interface Let {
  readonly kind: 'let'
  readonly name: string
  readonly type: ScalarType
  readonly value: Expr
  /** Set for a value computed once per chunk. */
  readonly ofChunk?: ChunkValue
}

/** The 64-bit offset at which a row of a tensor starts. */
export interface Offset {
  readonly kind: 'offset'
  readonly name: string
  readonly value: Expr
}

/** Registers for elements: of a row value, or of a chunk that is stored. */
export interface Buffer {
  readonly kind: 'buffer'
  readonly name: string
  readonly type: ScalarType
  readonly shape: 'chunk' | 'row'
  /** Row value that it holds; undefined for elements to be stored. */
  readonly row?: string
  /** Base of its name in source, if it is not the row's. */
  readonly of?: string
  readonly zero: boolean
  readonly from: readonly Expr[]
}

/** A load of a chunk (in a loop), or of all chunks of a lane. */
export interface Copy {
  readonly kind: 'copy'
  readonly row: string
  readonly load: ExprOf<'load'>
  readonly access: Access
  /** A row-uniform mask. */
  readonly guard?: Expr
  readonly shape: 'chunk' | 'row'
  /** Length of the row, for all chunks. */
  readonly length: Expr
  /** True if a later pass reads the row in registers. */
  readonly keep: boolean
  /** Registers that hold the row's only chunk, if a lane has one. */
  readonly prefetched?: string
}

/** A prefetch of the only chunk of a row, if a lane has one. */
export interface Prefetch {
  readonly kind: 'prefetch'
  readonly name: string
  readonly copy: Copy
}

/** Request of the first elements of a tensor, before the kernel waits for the previous one. It comes before all other nodes. */
export interface Request {
  readonly kind: 'request'
  readonly tensor: string
  readonly length: Expr
}

/** An element of a row value. */
export interface Compute {
  readonly kind: 'compute'
  readonly row: string
  readonly type: ScalarType
  readonly value: Expr | { readonly scan: Accumulator; readonly field: number }
  readonly shape: Shape
}

/** An element of a chunk that is stored. */
export interface Fill {
  readonly kind: 'fill'
  readonly buffer: string
  readonly tensor: string
  readonly value: Expr
  readonly when?: Expr
}

/** A running reduction of a lane, or of the values up to each element. */
export interface Accumulator {
  readonly kind: 'accumulator'
  readonly name: string
  /** Scalar or row value that it computes; undefined if it has several. */
  readonly of: string | undefined
  readonly monoid: Monoid
  readonly type: ScalarType
  readonly scan: boolean
  /** Set if each element of a thread's chunk, a column, has one. */
  readonly columns?: true
  /** Rows of a scan, with the fields that they store. */
  readonly rows: readonly { readonly row: string; readonly field: number }[]
  /** Initial values of a recurrence. */
  readonly starts: readonly Expr[]
  readonly from: readonly Expr[]
}

export interface Accumulate {
  readonly kind: 'accumulate'
  readonly into: Accumulator
  readonly values: readonly Expr[]
}

/** Combination of an accumulator across the elements of a chunk, or across the lanes of a team. */
export interface Combine {
  readonly kind: 'combine'
  readonly accumulator: Accumulator
  readonly across: 'vector' | 'lane'
  /** Scalars that hold the total, one per field. */
  readonly into: readonly { readonly name: string; readonly type: ScalarType }[]
}

/** Memory for the results of a loop over rows. The blocks of a cluster announce before the loop that they will exchange results. */
export interface Announce {
  readonly kind: 'announce'
  readonly name: string
  readonly accumulators: readonly Accumulator[]
  /** Those of earlier loops, whose memory comes first. */
  readonly before: readonly Announce[]
}

/** Combination of the accumulators of a loop across the threads that divide it. After one across the grid, the last block alone goes on. */
export interface Exchange {
  readonly kind: 'exchange'
  readonly across: 'slot' | 'grid'
  /** Name of the announced memory, across slots. */
  readonly through?: string
  readonly parts: readonly Pick<Combine, 'accumulator' | 'into'>[]
}

export interface StoreChunk {
  readonly kind: 'storeChunk'
  readonly access: Access
  readonly buffer: string
  readonly when?: Expr
  readonly from: readonly Expr[]
}

/** A store of one element: by the lane that computes it, by the first lane of the row, or by the first slot of a chunk of columns. */
export interface Store {
  readonly kind: 'store'
  readonly tensor: string
  readonly indices: readonly Expr[]
  readonly value: Expr
  readonly when?: Expr
  readonly by: 'owner' | 'first lane' | 'first slot'
}

/** Statements for elements that exist. In the fast version of a row all do. */
export interface IfExists {
  readonly kind: 'exists'
  readonly whole: boolean
  readonly body: readonly Loop[]
}

/** A row in shared memory. */
export interface Shared {
  readonly kind: 'shared'
  readonly row: SharedRow
}

export interface Put {
  readonly kind: 'put'
  readonly row: string
  readonly index: string
  readonly value: Expr
}

/** A point where the lanes of a row meet. Rows in shared memory can be read from there on. */
export interface Barrier {
  readonly kind: 'barrier'
  readonly publishes: readonly string[]
  readonly from?: readonly Expr[]
}

/** Parts of a construct that lanes compute together by a function of the device library. */
export type SearchPart = 'declare' | 'openChunk' | 'element' | 'leaveChunk' | 'finish'

export interface Search {
  readonly kind: 'search'
  readonly stmt: Extract<PassStmt, { kind: 'histogram' | 'counts' | 'topK' | 'argsort' }>
  readonly part: SearchPart
}

/** A construct that a team computes in loops of its own. */
export interface Call {
  readonly kind: 'call'
  readonly stmt: Threshold | FoldedState
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
  readonly aligned: readonly Access[]
  /** Names of offsets that are multiples of the width, as products of such a length: their rows are aligned if their tensors are. */
  readonly multiples: ReadonlySet<string>
  readonly body: readonly Loop[]
}

export type Loop =
  | LaneLoop
  | DividedLoop
  | VectorLoop
  | Let
  | Offset
  | Buffer
  | Copy
  | Prefetch
  | Request
  | Compute
  | Fill
  | Accumulator
  | Accumulate
  | Combine
  | Announce
  | Exchange
  | StoreChunk
  | Store
  | IfExists
  | Shared
  | Put
  | Barrier
  | Search
  | Call
  | Version

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
