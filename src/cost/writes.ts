/**
 * Elements of each output that a kernel stores, for the cost model. An output that updates an input has the input's memory, so that only replaced
 * elements are stored: one position of a cache, not the cache.
 */
import type { Expr } from '../ir/expr.js'
import type { Kernel, Stmt } from '../ir/kernel.js'
import { type DecodeAttentionKernel, isTemplate, type TemplateKernel } from '../ir/template.js'
import { placeUpdates, UpdateConflict } from '../ir/update.js'
import { freeNames, substitute, visit } from '../ir/walk.js'
import { lengthOf, type Sizes } from './sizes.js'
import { decodeExtents } from './template_reads.js'

/**
 * The kernel in the form in which it runs, reading only the needed elements of an updated tensor. A kernel with a conflicting update is refused
 * elsewhere.
 */
export function placed(kernel: Kernel): Kernel {
  try {
    return placeUpdates(kernel)
  } catch (error) {
    if (error instanceof UpdateConflict) return kernel
    throw error
  }
}

/** Elements stored of outputs that update inputs, by name; all others are stored whole. @param kernel as it runs */
export function storedOf(kernel: Kernel | TemplateKernel, sizes: Sizes): ReadonlyMap<string, number> {
  if (isTemplate(kernel)) return kernel.kind === 'decode attention' ? freshOf(kernel, sizes) : new Map()
  const updated = new Set(kernel.tensors.flatMap(({ name, updates }) => (updates === undefined ? [] : [name])))
  const stored = new Map<string, number>()
  for (const stmt of kernel.body) {
    if (!('tensor' in stmt) || !updated.has(stmt.tensor)) continue
    stored.set(stmt.tensor, (stored.get(stmt.tensor) ?? 0) + placesOf(kernel, stmt, sizes))
  }
  return stored
}

/** Rows of keys and values that are appended to their caches: one per sequence and head. */
function freshOf(kernel: DecodeAttentionKernel, sizes: Sizes): ReadonlyMap<string, number> {
  const { fresh, shared } = kernel
  if (fresh === undefined) return new Map()
  const { batch, heads, headDim } = decodeExtents(kernel, sizes)
  const rows = (batch * heads) / lengthOf(shared, sizes)
  return new Map([
    [fresh.keyCache.tensor, rows * headDim],
    [fresh.valueCache.tensor, rows * lengthOf(kernel.valueDim, sizes)],
  ])
}

/**
 * Number of times that a store runs. A condition may select the replaced elements by a tensor that is read element by element with them: then
 * there are as many as that tensor has.
 */
function placesOf({ rows, tensors, body }: Kernel, stmt: Extract<Stmt, { readonly tensor: string }>, sizes: Sizes): number {
  const extent = (dim: string): number => sizes.dims[dim] ?? Number.POSITIVE_INFINITY
  const length = 'length' in stmt ? lengthOf(stmt.length, sizes) : 1
  const all = rows.reduce((product, { dim }) => product * extent(dim), length)
  if (stmt.kind === 'histogram' || stmt.when === undefined) return all
  const indices = [...rows.map(({ index }) => index), ...('index' in stmt ? [stmt.index] : [])]
  let most = all
  visit(writtenOut(stmt.value, body), (node) => {
    if (node.kind !== 'load') return
    const used = freeNames(node)
    const dims = tensors.find(({ name }) => name === node.tensor)?.dims ?? []
    if (indices.every((index) => used.has(index)))
      most = Math.min(
        most,
        dims.reduce((product, dim) => product * extent(dim), 1),
      )
  })
  return most
}

/** An expression with the scalars of a body inlined. */
function writtenOut(expr: Expr, body: Kernel['body']): Expr {
  const lets = new Map<string, Expr>()
  for (const stmt of body) if (stmt.kind === 'let') lets.set(stmt.name, substitute(stmt.value, lets))
  return substitute(expr, lets)
}
