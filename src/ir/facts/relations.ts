/**
 * Relations between extents that a body assumes: one that reads `x(m, c + n)`, where c runs over n, needs rows of 2n elements. Used when
 * a body has read out of bounds, to suggest the fact that would have prevented it.
 */
import type { Expr } from '../expr.js'
import type { Kernel, Stmt } from '../kernel.js'
import { stmtExprs, visit } from '../walk.js'

export interface Relation {
  readonly tensor: string
  /** A dimension of the tensor, or of an index that is divided to read it, and the extent that the reads of the body need. */
  readonly dim: string
  readonly size: string
  /** Fact to state about the dimension: the size, or a bound if no fact can express the size. */
  readonly fact: string
}

/** Sums of products: a factor for each product of sorted names; the empty product is the constant. */
type Polynomial = ReadonlyMap<string, number>

const numberOf = (value: number): Polynomial => new Map([['', value]])

const plus = (a: Polynomial, b: Polynomial): Polynomial => {
  const sum = new Map(a)
  for (const [product, factor] of b) sum.set(product, (sum.get(product) ?? 0) + factor)
  return sum
}

const productOf = (...parts: readonly string[]): string =>
  parts
    .flatMap((part) => (part === '' ? [] : part.split('*')))
    .sort()
    .join('*')

const times = (a: Polynomial, b: Polynomial): Polynomial =>
  [...a].reduce<Polynomial>(
    (sum, [x, factor]) => [...b].reduce((all, [y, other]) => plus(all, new Map([[productOf(x, y), factor * other]])), sum),
    new Map(),
  )

const isNumber = ([product]: readonly [string, number]): boolean => product === ''

/** A size in the syntax of facts, and the fact to state; undefined if a term other than a number is subtracted. */
function statedOf(sum: Polynomial): Pick<Relation, 'size' | 'fact'> | undefined {
  const terms = [...sum].filter(([, factor]) => factor !== 0)
  const products = terms.filter((term) => !isNumber(term))
  if (terms.length === 0 || products.some(([, factor]) => factor < 0)) return undefined
  const rest = terms.find(isNumber)?.[1] ?? 0
  const text = products.map(([product, factor]) => (factor === 1 ? product : `${factor}*${product}`)).join('+')
  if (rest < 0) return { size: `${text}${rest}`, fact: `{ atLeast: '${text}' }` }
  const size = [...(text === '' ? [] : [text]), ...(rest > 0 ? [String(rest)] : [])].join('+')
  return { size, fact: `'${size}'` }
}

/** Extent at which sizes are compared, which mostly finds the larger one: the same for all dimensions, neither small nor round. */
const usualExtent = 37

const magnitudeOf = (sum: Polynomial): number =>
  [...sum].reduce((all, [product, factor]) => all + factor * (product === '' ? 1 : usualExtent ** product.split('*').length), 0)

/** Largest value of an index, for indices from 0 and nothing negative; undefined if it is known only at run time. */
function largest(expr: Expr, lengths: ReadonlyMap<string, Expr>): Polynomial | undefined {
  if (expr.kind === 'const') return Number(expr.value) >= 0 ? numberOf(Number(expr.value)) : undefined
  if (expr.kind === 'dim') return new Map([[expr.name, 1]])
  if (expr.kind === 'index') {
    const length = lengths.get(expr.name)
    const extent = length && largest(length, lengths)
    return extent && plus(extent, numberOf(-1))
  }
  if (expr.kind !== 'call' || (expr.fn !== 'add' && expr.fn !== 'mul')) return undefined
  const [a, b] = expr.args.map((arg) => largest(arg, lengths))
  if (a === undefined || b === undefined) return undefined
  return expr.fn === 'add' ? plus(a, b) : times(a, b)
}

/** Relation of a read at a quotient of an index by a constant or a dimension: `k: '32*p'` for `idiv(k, 32)`. */
function quotient(index: Expr, place: string, lengths: ReadonlyMap<string, Expr>): Omit<Relation, 'tensor'> | undefined {
  if (index.kind !== 'call' || (index.fn !== 'idiv' && index.fn !== 'shiftRight')) return undefined
  const [of, by] = index.args
  const length = of?.kind === 'index' ? lengths.get(of.name) : undefined
  if (length?.kind !== 'dim' || by === undefined || (by.kind !== 'const' && by.kind !== 'dim')) return undefined
  if (index.fn === 'shiftRight' && by.kind === 'dim') return undefined
  const each = by.kind === 'dim' ? by.name : String(index.fn === 'shiftRight' ? 2 ** Number(by.value) : by.value)
  const size = `${each}*${place}`
  return each === place || length.name === place ? undefined : { dim: length.name, size, fact: `'${size}'` }
}

/** Range of each index of a kernel. */
function lengthsOf({ rows, body }: Kernel): ReadonlyMap<string, Expr> {
  const lengths = new Map<string, Expr>(rows.map(({ index, dim }) => [index, { kind: 'dim', type: 'i32', name: dim }]))
  const add = (stmt: Stmt): void => {
    if ('index' in stmt && 'length' in stmt) lengths.set(stmt.index, stmt.length)
    for (const expr of stmtExprs(stmt))
      visit(expr, (node) => {
        if (node.kind === 'fold') lengths.set(node.index, node.length)
      })
  }
  body.forEach(add)
  return lengths
}

/** Largest extent that reads of a kernel need per dimension of a tensor, if no fact states it. A condition may keep such a read in bounds. */
export function unstatedRelations(kernel: Kernel): readonly Relation[] {
  const lengths = lengthsOf(kernel)
  const found = new Map<string, { readonly relation: Relation; readonly value: number }>()
  const see = (node: Expr): void => {
    if (node.kind !== 'load') return
    const dims = kernel.tensors.find(({ name }) => name === node.tensor)?.dims ?? []
    for (const [axis, index] of node.indices.entries()) {
      const dim = dims[axis] ?? ''
      const divided = quotient(index, dim, lengths)
      if (divided !== undefined && !isStated(kernel, divided.dim))
        found.set(`${node.tensor} ${dim}`, { relation: { tensor: node.tensor, ...divided }, value: 0 })
      const most = largest(index, lengths)
      if (most === undefined || isStated(kernel, dim)) continue
      const wanted = plus(most, numberOf(1))
      const stated = statedOf(wanted)
      const value = magnitudeOf(wanted)
      const key = `${node.tensor} ${dim}`
      if (stated === undefined || isOf(wanted, dim) || value <= (found.get(key)?.value ?? 0)) continue
      found.set(key, { relation: { tensor: node.tensor, dim, ...stated }, value })
    }
  }
  for (const stmt of kernel.body) for (const expr of stmtExprs(stmt)) visit(expr, see)
  return [...found.values()].map(({ relation }) => relation)
}

function isStated({ facts }: Kernel, dim: string): boolean {
  const { equal, atLeast } = facts?.dims[dim] ?? {}
  return equal !== undefined || atLeast !== undefined
}

const isOf = (sum: Polynomial, dim: string): boolean => [...sum.keys()].some((product) => product.split('*').includes(dim))
