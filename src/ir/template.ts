/**
 * Template kernels: a hand-written main loop that a row program cannot express (a matmul, attention), with slots compiled from
 * bodies. To a caller it is a kernel like any other: tensors, dimensions and attributes in a fixed order.
 */
import type { Expr } from './expr.js'
import type { Kernel } from './kernel.js'
import type { MatmulKernel } from './product.js'

export type { MatmulKernel } from './product.js'

/** Signature for a launcher; the same fields as a row program's. */
type Signature = Pick<Kernel, 'name' | 'source' | 'dims' | 'types' | 'attrs' | 'tensors' | 'facts'>

/** Location of the row of one head of one token: a tensor and its logical indices, the last of which is element 0 of the row. */
export interface RowAccess {
  readonly tensor: string
  readonly indices: readonly Expr[]
}

/** Operand rows of attention's matmuls: read as they are, or computed while they are loaded, as an expression of element `c`. */
export type RowOperand = RowAccess & { readonly element?: Expr | undefined }

/** A row of a cache, which may be quantised with one scale per row: integers, each times `scale`. */
export type CacheAccess = RowAccess & { readonly scale?: Expr | undefined }

/**
 * Keys that a query attends: `lower <= j < upper`. Both are functions of `b`, `h` and `i` that never fall as `i` grows, so that tiles of
 * keys which no query of a block attends are skipped. They may lie outside the existing keys; a row may have none.
 */
export interface KeyRange {
  readonly lower: Expr
  readonly upper: Expr
}

/**
 * Softmax over the scores of a query and its weighted sum. With `top` the largest score of its keys, `e(j) = exp(score(j) -
 * top)`, `total` the sum of `e(j)` and `sum` that of `e(j) * value(j)`: `result = sum / denominator`, and 0 for a query all of whose keys
 * are masked, by the range or by a score of -Infinity or below -1e29. `stored` is the value that the kernel stores for it.
 */
export interface SoftmaxSlots {
  /** Score, as an expression of the local `raw`, the dot product of query and key, and of `b`, `h`, `i`, `j`. */
  readonly score: Expr
  readonly range: KeyRange
  /** Expression of the locals `total` and `top`, and of `b`, `h`, `i`: `total` itself in the ordinary softmax. */
  readonly denominator: Expr
  /** Element of `out`, as an expression of the local `result` and of `b`, `h`, `i` and the element `c`. */
  readonly stored: Expr
  /** Values of rows of the softmax that are stored too, one per query. */
  readonly perRow?: readonly RowValue[] | undefined
}

/**
 * A value of a row of the softmax, such as the logarithm of its sum of exponentials: an expression of the locals `total` and `top`, and of `b`,
 * `h`, `i`. A query all of whose keys are masked has `total` 0 and `top` -Infinity. It is stored at `indices`, of `b`, `h` and `i`.
 */
export interface RowValue {
  readonly tensor: string
  readonly indices: readonly Expr[]
  readonly value: Expr
}

/**
 * Attention of whole sequences: slots are expressions of the indices `b` (sequence), `h` (head), `i` (query) and `j` (key). Heads
 * share keys through the dependence of the rows of keys and values on `h`.
 */
export interface AttentionKernel extends Signature, SoftmaxSlots {
  readonly kind: 'attention'
  /** Extents by role: dimensions, or attributes where no tensor has the extent. `queries` is the largest number of rows per sequence. */
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
  /** Number of query rows of sequence `b` that are computed, and number that are written: the others as if results were zero. */
  readonly queryCount: Expr
  readonly ownedCount: Expr
}

/** The position of a decoding step. The key and value of sequence `b` there are computed in place, attended, and stored in the caches. */
export interface FreshPlace {
  /** Position; nothing is stored if it is outside the caches. */
  readonly place: Expr
  /** Element `c` of head `h` of the key and the value of sequence `b`. */
  readonly key: Expr
  readonly value: Expr
  /** Destinations of the rows: outputs that update the tensors of `key` and `value`, at position `j`. */
  readonly keyCache: RowAccess
  readonly valueCache: RowAccess
}

/**
 * Attention of a few query rows of a sequence, one at a time, over cached positions: the past of a decoder, or the memory of an encoder. Slots are
 * expressions of `b`, `h`, `i` and `j` as above; `query` is element `c` of a query row. Key and value rows are those of the sequence `owner`, a
 * local: if beams share cached rows, a table names the row to read. A scale is an expression of `owner`, `h` and `j`: constant over a row, it
 * multiplies the dot product with keys, and the weight of values.
 */
export interface DecodeAttentionKernel extends Signature, SoftmaxSlots {
  readonly kind: 'decode attention'
  readonly batch: Expr
  readonly heads: Expr
  /**
   * Number of consecutive heads that attend the same keys and values, which are read once for them: head `h` attends those of
   * `h idiv shared`, and `h` stands for that quotient in `key`, `value` and `fresh`.
   */
  readonly shared: Expr
  /** Query rows of each sequence; 1 if `fresh` is set. */
  readonly queries: Expr
  readonly headDim: Expr
  readonly valueDim: Expr
  /** Positions of a sequence in the cache, an upper bound of the attended ones. */
  readonly places: Expr
  readonly query: Expr
  readonly owner: Expr
  readonly key: CacheAccess
  readonly value: CacheAccess
  readonly out: RowAccess
  readonly fresh: FreshPlace | undefined
}

/** Tensor whose storage type attention multiplies: keys, values or queries that are not computed, otherwise the queries. A step multiplies its caches. */
export function multipliedTensor(kernel: AttentionKernel | DecodeAttentionKernel): string {
  if (kernel.kind === 'decode attention') return kernel.key.tensor
  const stored = [kernel.query, kernel.key, kernel.value].find(({ element }) => element === undefined)
  return (stored ?? kernel.query).tensor
}

/** True if attention's results are stored as they are. */
export const storesAsIs = ({ stored }: Pick<SoftmaxSlots, 'stored'>): boolean =>
  stored.kind === 'local' && stored.name === 'result'

/** True if the weights of a query are those of the ordinary softmax, whose sum is 1. */
export const isNormalised = ({ denominator }: Pick<SoftmaxSlots, 'denominator'>): boolean =>
  denominator.kind === 'local' && denominator.name === 'total'

export type TemplateKernel = MatmulKernel | AttentionKernel | DecodeAttentionKernel

/** True if a kernel is a template with compiled slots; any other is a row program. */
export const isTemplate = (kernel: Kernel | TemplateKernel): kernel is TemplateKernel => 'kind' in kernel
