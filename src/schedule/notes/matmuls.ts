/**
 * Notes on sums that are matmuls. Such a sum multiplies two factors, each constant along an axis that the other varies along. Every element of the
 * result then loads the same values as its neighbours, and no tensor core is used. Derived from bodies, not from names: a dot product in an
 * element, a squared distance, weights selected by an index.
 *
 *     y[t, n] = sum(c < k: x[t, c] * w[n, c])      x is the same for every n, w for every t
 */
import type { Expr, ExprOf } from '../../ir/expr.js'
import type { Kernel } from '../../ir/kernel.js'
import { printExpr } from '../../ir/print.js'
import { introducedNames, operands, stmtExprs, visit } from '../../ir/walk.js'
import { contains, hashOf } from '../normalise/rewrite.js'

/** Sums that are known to be shorter fill no tile of a tensor core. */
const shortest = 32

/** A sum, of a statement or in an element. */
interface Sum {
  readonly index: string
  readonly length: Expr
  readonly value: Expr
}

/** A read of a tensor in a factor, with the indices that it varies along. */
interface Read {
  readonly tensor: string
  readonly along: ReadonlySet<string>
  /** True if an index depends on loaded data. */
  readonly isChosen: boolean
}

/** Reads that a name stands for: those of a row's elements. */
type Rows = ReadonlyMap<string, readonly Read[]>

/** Messages for the matmuls in a kernel, each once. */
export function matmulMessages(kernel: Kernel): readonly string[] {
  const rows = new Map<string, readonly Read[]>()
  const messages: string[] = []
  const parallel = parallelIndices(kernel)
  for (const s of kernel.body) {
    const sums: Sum[] = s.kind === 'reduce' && s.monoid === 'sum' ? [s] : []
    for (const expr of stmtExprs(s))
      visit(expr, (node) => {
        if (node.kind === 'fold' && node.monoid === 'sum') sums.push(node)
      })
    messages.push(...sums.flatMap((sum) => messageOf(sum, rows, parallel) ?? []))
    if (s.kind === 'row' || s.kind === 'let')
      for (const name of introducedNames(s)) rows.set(name, readsIn(s.value, rows, s.kind === 'row' ? s.index : undefined))
  }
  return [...new Set(messages)]
}

/** Dimensions of the parallel indices of the kernel. */
function parallelIndices({ rows, body }: Kernel): ReadonlyMap<string, string> {
  const found = new Map(rows.map(({ index, dim }) => [index, dim]))
  for (const s of body) if (s.kind === 'storeRow' || s.kind === 'row') found.set(s.index, printExpr(s.length))
  return found
}

/** Reads of an expression. @param own index of the row that it is an element of; readers of the row replace it */
function readsIn(value: Expr, rows: Rows, own?: string): readonly Read[] {
  const found: Read[] = []
  const see = (node: Expr): void => {
    if (node.kind === 'load') {
      found.push(readOf(node, own))
      return
    }
    if (node.kind === 'element' || node.kind === 'local') {
      const name = node.kind === 'element' ? node.row : node.name
      const at = node.kind === 'element' ? indicesIn([node.index]) : []
      for (const read of rows.get(name) ?? []) found.push({ ...read, along: new Set([...read.along, ...at]) })
      return
    }
    for (const operand of operands(node)) see(operand)
  }
  see(value)
  return found
}

const readOf = ({ tensor, indices }: ExprOf<'load'>, own?: string): Read => ({
  tensor,
  along: new Set(indicesIn(indices).filter((name) => name !== own)),
  isChosen: indices.some((at) => contains(at, ({ kind }) => kind === 'load' || kind === 'element')),
})

/** Indices that places use directly. An index added to another slides a window, which is no matmul. */
function indicesIn(places: readonly Expr[]): readonly string[] {
  return places.flatMap((at) => {
    const names: string[] = []
    const see = (e: Expr): void => {
      if (e.kind === 'index') names.push(e.name)
      // A place loaded from memory is the same for all elements that load it.
      if (e.kind !== 'load' && e.kind !== 'element') for (const operand of operands(e)) see(operand)
    }
    see(at)
    return names
  })
}

/** Message for a sum; undefined if it is no matmul. */
function messageOf({ index, length, value }: Sum, rows: Rows, parallel: ReadonlyMap<string, string>): string | undefined {
  if (length.kind === 'const' && Number(length.value) < shortest) return undefined
  if (slides(value, index, parallel)) return undefined
  for (const { left, right, isSquared } of factorsIn(value)) {
    for (const a of readsIn(left, rows)) {
      for (const b of readsIn(right, rows)) {
        if (a.tensor === b.tensor && a.along.size === b.along.size && [...a.along].every((name) => b.along.has(name))) continue
        const [p, q] = [differing(a, b, parallel), differing(b, a, parallel)]
        if (p === undefined || q === undefined || !a.along.has(index) || !b.along.has(index)) continue
        const [over, across] = [parallel.get(p), parallel.get(q)]
        const instead = isSquared
          ? 'a squared difference is the sum of both squares less twice the matmul, which g.matmul of a graph computes'
          : a.isChosen || b.isChosen
            ? 'an op whose sum is x(row, i) * w(choice(row), c, i), of floats, with i along the last axis of both, is a grouped matmul'
            : 'let g.matmul of a graph compute it, with the code around it as prologue and epilogue'
        return (
          `a matmul: the sum over ${index} multiplies ${a.tensor}, constant along ${across}, by ${b.tensor}, constant along ${over}; ` +
          `each of ${over} x ${across} elements loads 2 x ${printExpr(length)} numbers, and no tensor core is used; ${instead}`
        )
      }
    }
  }
  return undefined
}

/** A parallel index that one read varies along and another does not. */
const differing = (of: Read, other: Read, parallel: ReadonlyMap<string, string>): string | undefined =>
  [...of.along].find((name) => parallel.has(name) && !other.along.has(name))

/** True if a place adds the index of the sum, or of one nested in it, to an index of the result, as in a convolution. */
function slides(value: Expr, index: string, parallel: ReadonlyMap<string, string>): boolean {
  const summed = new Set([index])
  visit(value, (node) => {
    if (node.kind === 'fold') summed.add(node.index)
  })
  const isWindow = (at: Expr): boolean => {
    const names = indicesIn([at])
    return names.some((name) => summed.has(name)) && names.some((name) => parallel.has(name))
  }
  return contains(value, (node) => node.kind === 'load' && node.indices.some(isWindow))
}

/** The two factors of a multiplication, or the two sides of a squared difference or sum. */
interface Factors {
  readonly left: Expr
  readonly right: Expr
  readonly isSquared: boolean
}

function factorsIn(value: Expr): readonly Factors[] {
  const found: Factors[] = []
  const squared = (e: Expr): void => {
    const [left, right] = e.kind === 'call' && (e.fn === 'sub' || e.fn === 'add') ? e.args : []
    if (left !== undefined && right !== undefined) found.push({ left, right, isSquared: true })
  }
  visit(value, (node) => {
    const [left, right] = node.kind === 'call' ? node.args : []
    if (node.kind !== 'call' || left === undefined) return
    if (node.fn === 'square' || (node.fn === 'pow' && right?.kind === 'const' && right.value === 2)) squared(left)
    else if (node.fn === 'mul' && right !== undefined) {
      found.push({ left, right, isSquared: false })
      if (hashOf(left) === hashOf(right)) squared(left)
    }
  })
  return found
}
