/**
 * Template kernels: a hand-written main loop that a row program cannot say (a matmul, attention), with slots compiled from
 * bodies. To whoever launches one it is a kernel like any other: tensors, dimensions and attributes in a fixed order.
 */
import type { Expr } from './expr.js'
import type { Kernel } from './kernel.js'
import type { MatmulKernel } from './product.js'

export type { MatmulKernel } from './product.js'

/** What a launcher needs to know; the same fields as a row program's. */
type Signature = Pick<Kernel, 'name' | 'source' | 'dims' | 'types' | 'attrs' | 'tensors' | 'facts'>

/** Where the row of one head of one token lies: a tensor and its logical indices, the last of which is element 0 of the row. */
export interface RowAccess {
  readonly tensor: string
  readonly indices: readonly Expr[]
}

/** The rows a product of attention takes: read as they are, or computed while they are loaded, as an expression of element `c`. */
export type RowOperand = RowAccess & { readonly element?: Expr | undefined }

/** A row of a cache, all elements of which may be in steps of their row: integers, each times `scale`. */
export type CacheAccess = RowAccess & { readonly scale?: Expr | undefined }

/**
 * The keys a query attends: `lower <= j < upper`. Both are functions of `b`, `h` and `i` that never fall as `i` grows, so that tiles of
 * keys that no query of a block attends are left out. They may lie outside of the keys there are; a row may have none.
 */
export interface KeyRange {
  readonly lower: Expr
  readonly upper: Expr
}

/**
 * What attention makes of the scores of a query, whatever computes them. With `top` the largest score of its keys, `e(j) = exp(score(j) -
 * top)`, `total` the sum of `e(j)` and `sum` that of `e(j) * value(j)`: `result = sum / denominator`, and 0 for a query all of whose keys
 * are masked, by the range or by a score of -Infinity or below -1e29. `stored` is what the kernel stores of it.
 */
export interface SoftmaxSlots {
  /** A score as an expression of the local `raw`, the product of query and key, and of `b`, `h`, `i`, `j`. */
  readonly score: Expr
  readonly range: KeyRange
  /** Of the locals `total` and `top`, and of `b`, `h`, `i`: `total` itself in the ordinary softmax. */
  readonly denominator: Expr
  /** What an element of `out` is, of the local `result` and of `b`, `h`, `i` and the element `c`. */
  readonly stored: Expr
}

/**
 * Attention of whole sequences: slots are expressions of the indices `b` (sequence), `h` (head), `i` (query) and `j` (key). Heads that
 * share keys say so by how the rows of keys and values depend on `h`.
 */
export interface AttentionKernel extends Signature, SoftmaxSlots {
  readonly kind: 'attention'
  /** Extents by role: dimensions, or attributes where no tensor has the extent. `queries` is the most rows a sequence has. */
  readonly batch: Expr
  readonly heads: Expr
  readonly queries: Expr
  readonly keys: Expr
  readonly headDim: Expr
  /** Elements of a row of values and of results. */
  readonly valueDim: Expr
  readonly query: RowOperand
  readonly key: RowOperand
  readonly value: RowOperand
  readonly out: RowAccess
  /** How many query rows of sequence `b` are computed, and how many are written: the others as if results were zero. */
  readonly queryCount: Expr
  readonly ownedCount: Expr
}

/** The place of a step: what sequence `b` has there is computed on the way, attended, and stored in the caches of keys and values. */
export interface FreshPlace {
  /** Nothing is stored where it is no place of the caches. */
  readonly place: Expr
  /** Element `c` of head `h` of keys and values of sequence `b`. */
  readonly key: Expr
  readonly value: Expr
  /** Where the rows are stored: outputs that update the tensors of `key` and `value`, at place `j`. */
  readonly keyCache: RowAccess
  readonly valueCache: RowAccess
}

/**
 * The same for a few query rows of a sequence, one at a time, over places that are in memory already: the past of a decoder, or the
 * memory of an encoder. Slots are expressions of `b`, `h`, `i` and `j` as above; `query` is element `c` of a query row, and key and
 * value rows are those of the sequence `owner`, a local: where beams share their past, a table says whose row is read. A scale is an
 * expression of `owner`, `h` and `j`: the same for a whole row, it multiplies a product with keys, and the weight of values.
 */
export interface DecodeAttentionKernel extends Signature, SoftmaxSlots {
  readonly kind: 'decode attention'
  readonly batch: Expr
  readonly heads: Expr
  /**
   * Neighbouring heads that attend the same keys and values, which are read once for them: head `h` attends those of `h idiv shared`,
   * and that is what `h` stands for in `key`, `value` and `fresh`.
   */
  readonly shared: Expr
  /** Query rows of each sequence; 1 where a place is fresh. */
  readonly queries: Expr
  readonly headDim: Expr
  readonly valueDim: Expr
  /** Places of a sequence in memory, of which at most that many are attended. */
  readonly places: Expr
  readonly query: Expr
  readonly owner: Expr
  readonly key: CacheAccess
  readonly value: CacheAccess
  readonly out: RowAccess
  readonly fresh: FreshPlace | undefined
}

/** True if attention's results are stored as they are. */
export const storesAsIs = ({ stored }: Pick<SoftmaxSlots, 'stored'>): boolean =>
  stored.kind === 'local' && stored.name === 'result'

/** True if the weights of a query are those of the ordinary softmax: they add up to 1. */
export const isNormalised = ({ denominator }: Pick<SoftmaxSlots, 'denominator'>): boolean =>
  denominator.kind === 'local' && denominator.name === 'total'

export type TemplateKernel = MatmulKernel | AttentionKernel | DecodeAttentionKernel

/** True if a kernel is a template with compiled slots; any other is a row program. */
export const isTemplate = (kernel: Kernel | TemplateKernel): kernel is TemplateKernel => 'kind' in kernel
