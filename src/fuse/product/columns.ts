/**
 * Columns of a matmul that the epilogue of a column may read: those of the same aligned chunk, which one thread holds. Columns at the same offset in
 * their chunks are computed in the same way, so each of the eight offsets is tried once for all chunks: `q` is the chunk's number, and an index is
 * followed as `per * q + at`. Reads of a branch that is not taken do not count.
 */
import type { Expr, ExprOf } from '../../ir/expr.js'
import { intrinsic } from '../../ir/intrinsics.js'
import { operands } from '../../ir/walk.js'

/** Number of columns that an epilogue takes at a time; a chunk starts at a multiple of it. */
export const chunkColumns = 8

/** The integer `per * q + at` in the chunk with number `q`, or a number or boolean that is the same in all chunks. */
interface Followed {
  readonly per: number
  readonly at: number | boolean
}

/**
 * True if an expression reads some tensors only at last indices in the chunk of the column `index`.
 * @param reads true for loads of these tensors
 */
export const readsInChunk = (expr: Expr, index: string, reads: (load: ExprOf<'load'>) => boolean): boolean =>
  eachColumn((column) => {
    const seen = new Set<Expr>()
    const open = [expr]
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      if (seen.has(node)) continue
      seen.add(node)
      if (node.kind === 'load' && reads(node) && !isOfChunk(follow(node.indices.at(-1), index, column))) return false
      const [condition, kept, other] = node.kind === 'call' && node.fn === 'select' ? node.args : []
      const holds = follow(condition, index, column)?.at
      const taken = holds === true ? kept : holds === false ? other : undefined
      open.push(...(taken === undefined ? operands(node) : [taken]))
    }
    return true
  })

const eachColumn = (holds: (column: number) => boolean): boolean =>
  Array.from({ length: chunkColumns }, (_, column) => column).every(holds)

const isOfChunk = (place: Followed | undefined): boolean =>
  place?.per === chunkColumns && typeof place.at === 'number' && place.at >= 0 && place.at < chunkColumns

/** An expression at the column with offset `column` in its chunk; undefined for an expression that cannot be followed. */
function follow(expr: Expr | undefined, index: string, column: number): Followed | undefined {
  if (expr?.kind === 'index' && expr.name === index) return { per: chunkColumns, at: column }
  if (expr?.kind === 'const') return { per: 0, at: expr.value }
  if (expr?.kind !== 'call') return undefined
  const args = expr.args.map((arg) => follow(arg, index, column))
  const [a, b, c] = args
  if (expr.fn === 'select') return typeof a?.at === 'boolean' ? (a.at ? b : c) : undefined
  const known = args.flatMap((arg) => (arg?.per === 0 ? [arg.at] : []))
  if (known.length === args.length) return { per: 0, at: intrinsic(expr.fn).evaluate(...(known as [never, never, never])) }
  return along(expr.fn, a, b)
}

/** Applies a function to numbers that differ between chunks. */
function along(fn: string, a: Followed | undefined, b: Followed | undefined): Followed | undefined {
  if (typeof a?.at !== 'number' || typeof b?.at !== 'number') return undefined
  switch (fn) {
    case 'add':
      return { per: a.per + b.per, at: a.at + b.at }
    case 'sub':
      return { per: a.per - b.per, at: a.at - b.at }
    case 'mul':
      return a.per === 0 || b.per === 0 ? { per: a.per * b.at + b.per * a.at, at: a.at * b.at } : undefined
    case 'idiv':
      return isWhole(a, b) ? { per: a.per / b.at, at: Math.floor(a.at / b.at) } : undefined
    case 'mod':
      return isWhole(a, b) ? { per: 0, at: a.at % b.at } : undefined
    case 'bitAnd': {
      const [of, mask] = b.per === 0 ? [a, b.at] : [b, a.at]
      if (isLow(of, mask)) return { per: 0, at: Number(of.at) & mask }
      return isLow(of, ~mask) ? { per: of.per, at: Number(of.at) & mask } : undefined
    }
    case 'bitOr':
    case 'bitXor': {
      const [of, mask] = b.per === 0 ? [a, b.at] : [b, a.at]
      const at = Number(of.at)
      // The bits of a chunk's number are above those of the offset, and stay as they are.
      if (!isLow(of, mask) || at < 0 || at >= chunkColumns) return undefined
      return { per: of.per, at: fn === 'bitOr' ? at | mask : at ^ mask }
    }
    case 'shiftLeft':
    case 'shiftRight':
      if (b.per !== 0 || b.at < 0 || b.at > 30) return undefined
      return along(fn === 'shiftLeft' ? 'mul' : 'idiv', a, { per: 0, at: 2 ** b.at })
    default:
      return undefined
  }
}

/** True if a mask has only bits of the offset in a chunk. */
const isLow = (of: Followed, mask: number): boolean => mask >= 0 && mask < chunkColumns && of.per % chunkColumns === 0

/** True if chunks are a whole number of divisors apart, and none has a number below zero, which would be rounded up. */
const isWhole = (of: Followed, by: Followed): of is Followed & { readonly at: number } =>
  by.per === 0 && Number(by.at) > 0 && of.per >= 0 && of.per % Number(by.at) === 0 && Number(of.at) >= 0
