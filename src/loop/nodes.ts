/**
 * Nodes of the loop IR without a body: values, registers and shared memory, loads and stores, combinations, and points where threads meet. Their
 * order and those who run them are given by the loops around them (src/loop/ir.ts).
 */
import type { ScalarType } from '../ir/dtype.js'
import type { Expr, ExprOf } from '../ir/expr.js'
import type { RowAxis, StmtOf } from '../ir/kernel.js'
import type { UserMonoid } from '../ir/user_monoid.js'
import type { UserRecurrence } from '../ir/user_recurrence.js'
import type { Interval } from '../schedule/divided/update_range.js'
import type { Loop as Counted, FoldedState, PassStmt, SharedRow, TeamScalar } from '../schedule/normalise/normal.js'
import type { TileLayout } from './tile_layout.js'

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
  /** Elements from one index of the loop to the next, all of which are moved; one if undefined. `indices` are those of the first. */
  readonly factor?: number
  /** Name of the offset of the row's first element, if the row is one run that does not start at element 0. */
  readonly start?: string
  /** Set in loops over rows, whose offset is computed at the access: `packed` if each row begins where the one before ends. */
  readonly rows?: 'packed' | 'apart'
  /** True if every chunk is full and aligned in the fast version of the row. */
  readonly whole: boolean
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
  /** Elements for each index of the loop; one if undefined. */
  readonly factor?: number
  readonly zero: boolean
  readonly from: readonly Expr[]
}

/** A member of the elements that an access with a factor moves for an index. */
export interface Member {
  readonly member: number
  readonly indices: readonly Expr[]
}

/** Rows of the elements of a span: of a chunk, and of places beside it. Elements beyond an end of the row are 0. */
export interface Span {
  readonly before: number
  readonly after: number
  readonly rows: readonly { readonly row: string; readonly shift: number }[]
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
  /** Held rows that the chunk is left for, or taken from where a launch holds them. */
  readonly held?: { readonly rows: string; readonly is: 'left' | 'taken' }
  /** Elements beside the chunk that are loaded with it, as rows; `row` is the first of them. All are 0 where the guard does not hold. */
  readonly span?: Span
  /** Rows of the members of an access with a factor; `row` is one of them. */
  readonly members?: readonly (Member & { readonly row: string })[]
}

/** Rows of a thread's columns in shared memory, from the loop that loads them to later ones. A launch that has no room for them reads them again. */
export interface Held {
  readonly kind: 'held'
  readonly name: string
  /** The first load of the rows, in the loop over them with the index `row`. */
  readonly load: ExprOf<'load'>
  readonly row: string
  readonly length: Expr
  /** Rows and results of loops that have shared memory in front of it. */
  readonly before: readonly Held[]
  readonly exchanges: readonly Announce[]
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

/** Quotients and remainders of the index of an element by divisors: of the index by the first, of that quotient by the second, and so on. */
export interface CountPlaces {
  readonly kind: 'count'
  readonly index: string
  readonly divisors: readonly Expr[]
  /** Names, one for each divisor. */
  readonly quotients: readonly string[]
  readonly remainders: readonly string[]
}

/** An element of a row value. */
export interface Compute {
  readonly kind: 'compute'
  readonly row: string
  readonly type: ScalarType
  readonly value: Expr | { readonly scan: Accumulator; readonly field: number }
  readonly shape: Shape
}

/**
 * Values that are the same for all columns of a group, such as its mean. Threads of the block compute one for each group of the tile, meet, and
 * take those of their columns.
 */
export interface Groups {
  readonly kind: 'groups'
  readonly row: string
  readonly type: ScalarType
  /** Index of the group in `value`. */
  readonly group: string
  readonly value: Expr
  /** Index and number of the columns; group `g` has those from `g * length` on. */
  readonly column: string
  readonly columns: Expr
  readonly length: Expr
}

/** An element of a chunk that is stored. */
export interface Fill {
  readonly kind: 'fill'
  readonly buffer: string
  readonly tensor: string
  readonly value: Expr
  readonly when?: Expr
  /** Place among the elements of an index, in a buffer with a factor. */
  readonly place?: { readonly factor: number; readonly member: number }
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
  /** Scalar that terms of a chunk are shifted by: the largest element of the lane so far, or the least finite number (passes/shift_sums.ts). */
  readonly shift?: string
}

export interface Accumulate {
  readonly kind: 'accumulate'
  readonly into: Accumulator
  readonly values: readonly Expr[]
  /** The element that a maximum is of, or the terms of sums that are shifted by it. */
  readonly part?: 'maximum' | 'sums'
}

/** Scaling of a lane's sums to the largest element of its chunk, between the loop that finds it and the loop that adds the terms. */
export interface Rescale {
  readonly kind: 'rescale'
  readonly accumulator: Accumulator
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
  /** True if blocks of the grid may divide the rows of a column, too: the last of them alone goes on. */
  readonly sections?: boolean
  readonly parts: readonly Pick<Combine, 'accumulator' | 'into'>[]
}

export interface StoreChunk {
  readonly kind: 'storeChunk'
  readonly access: Access
  readonly buffer: string
  readonly when?: Expr
  readonly from: readonly Expr[]
  /** Members of an access with a factor. */
  readonly members?: readonly Member[]
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

/** A point where the lanes of a row meet, or all threads of a block. Rows and tiles in shared memory can be read from there on. */
export interface Barrier {
  readonly kind: 'barrier'
  readonly scope?: 'block'
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
  readonly stmt: TeamScalar | FoldedState
}

/** Digit of the number of a share of the work: of an axis, of the places of an interval, of the chunks of a row, or of the tiles of one side. */
export type Digit =
  | { readonly of: 'axis'; readonly axis: RowAxis }
  /** Slots for the places of an interval, of which `narrow` computes the index. */
  | { readonly of: 'slots'; readonly interval: Interval }
  | { readonly of: 'chunks'; readonly index: string; readonly length: Expr }
  | { readonly of: 'tiles'; readonly side: 'rows' | 'columns'; readonly index: string; readonly length: Expr }

/** Index of a slot's place in an interval. Threads of a slot after the last place are done. */
export interface Narrow {
  readonly kind: 'narrow'
  readonly interval: Interval
}

/** A tile of a tensor in shared memory, and the layout of its words. */
export interface Tile {
  readonly kind: 'tile'
  readonly name: string
  readonly tensor: string
  readonly layout: TileLayout
}

/** A load of a tile by all threads of a block, in chunks along its rows. Elements after the end of either side are 0. */
export interface FillTile {
  readonly kind: 'fillTile'
  readonly tile: string
  readonly load: ExprOf<'load'>
  readonly vec: number
  /** True if offsets rise by 1 along rows and by a constant along columns. */
  readonly isLinear: boolean
  readonly rows: Counted
  readonly columns: Counted
}
