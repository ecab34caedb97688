/**
 * Relations of extents that a body takes for granted: one that reads `x(m, c + n)`, where c runs over n, wants rows of 2n elements. Asked where
 * a body has read outside of a tensor, for the fact that would have kept it inside.
 */
import type { Expr } from '../expr.js'
import type { Kernel, Stmt } from '../kernel.js'
import { stmtExprs, visit } from '../walk.js'

export interface Relation {
  readonly tensor: string
  /** A dimension of the tensor, or of an index that is divided to read it, and how long the reads of the body want it. */
  readonly dim: string
  readonly size: string
  /** What to state of the dimension: the size, or another that is enough where no fact says it. */
  readonly fact: string
}

/** Sums of products: a factor for each product of names, which stand in order; the empty product is a number. */
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

/** A size as facts write it, and what to state; undefined where something but a number is taken away. */
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

/** What tells the larger of two sizes, for the most part: their values where all extents are the same, and neither small nor round. */
const usualExtent = 37

const magnitudeOf = (sum: Polynomial): number =>
  [...sum].reduce((all, [product, factor]) => all + factor * (product === '' ? 1 : usualExtent ** product.split('*').length), 0)

/** The largest value of an index where indices start at 0 and nothing is negative; undefined where only the device knows. */
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

/** A read at a quotient of an index by a constant or a dimension: the index has that many values for each place, `k: '32*p'` of `idiv(k, 32)`. */
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

/** What each index of a kernel runs over. */
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

/** Of each dimension of a tensor the most that reads of a kernel want, where no fact states it. A condition may keep such a read inside. */
export function unstatedRelations(kernel: Kernel): readonly Relation[] {
  const lengths = lengthsOf(kernel)
  const found = new Map<string, { readonly relation: Relation; readonly value: number }>()
  const see = (node: Expr): void => {
    if (node.kind !== 'load') return
    const dims = kernel.tensors.find(({ name }) => name === node.tensor)?.dims ?? []
    for (const [axis, index] of node.indices.entries()) {
      const dim = dims[axis] ?? ''
      const divided = quotient(index, dim, lengths)
      if (divided !== undefined && !isTold(kernel, divided.dim))
        found.set(`${node.tensor} ${dim}`, { relation: { tensor: node.tensor, ...divided }, value: 0 })
      const most = largest(index, lengths)
      if (most === undefined || isTold(kernel, dim)) continue
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

function isTold({ facts }: Kernel, dim: string): boolean {
  const { equal, atLeast } = facts?.dims[dim] ?? {}
  return equal !== undefined || atLeast !== undefined
}

const isOf = (sum: Polynomial, dim: string): boolean => [...sum.keys()].some((product) => product.split('*').includes(dim))
