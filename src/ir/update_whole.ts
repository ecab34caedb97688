/**
 * Outputs that replace all of what they update, each element by what is computed of that element: `p2(c) = p(c) - rate * m(c)`, several
 * tensors in one kernel. A thread reads an element before it writes it and nobody else reads it, so old and new may share memory. What is
 * computed of the element may be added to what rows or columns of other tensors combine to: a gradient that is accumulated.
 * Asked where an output is no choice between something new and the element as it was (src/ir/update.ts).
 */
import type { Expr } from './expr.js'
import type { Kernel, Stmt, StmtOf } from './kernel.js'
import { stmtExprs, visit } from './walk.js'

/** Why an output cannot be replaced in place. */
export class UpdateConflict extends Error {
  readonly tensor: string
  /** Whether the output is no choice at all, so that it may replace every element. */
  readonly isUnchosen: boolean
  /** What to write instead, where that is not a choice. */
  readonly hint: string | undefined

  constructor(tensor: string, message: string, { isUnchosen = false, hint }: { isUnchosen?: boolean; hint?: string } = {}) {
    super(message)
    this.tensor = tensor
    this.isUnchosen = isUnchosen
    this.hint = hint
  }
}

/** Whether a kernel replaces elements of its inputs. */
export const isUpdating = ({ tensors }: Pick<Kernel, 'tensors'>): boolean => tensors.some(({ updates }) => updates !== undefined)

/**
 * `whole` where what is replaced is read for the element it is replaced in and at no other place. Where all is stored so but something
 * is read elsewhere, why it cannot be; undefined where the kernel computes otherwise.
 * @param conflict why its outputs are no choices that have a place
 */
export function replacesWhole(kernel: Kernel, { isUnchosen }: UpdateConflict): 'whole' | UpdateConflict | undefined {
  const { body, tensors, rows } = kernel
  const stores = body.filter((s): s is StmtOf<'store'> | StmtOf<'storeRow'> => s.kind === 'store' || s.kind === 'storeRow')
  const [first] = stores
  if (first === undefined || body.some(({ kind }) => kind === 'histogram')) return undefined
  if (stores.some((s) => s.kind !== first.kind || s.when !== undefined || !runsOver(s, first, rows))) return undefined
  const updated = tensors.flatMap(({ name, updates }) => (updates === undefined ? [] : [{ name, updates }]))
  // Threads of a row compute its other statements together, in front of the stores of any of them.
  const others = body.filter(({ kind }) => kind !== 'store' && kind !== 'storeRow')
  const isReduced = others.some(({ kind }) => kind !== 'let')
  if (isReduced && (!isUnchosen || updated.some(({ updates }) => others.some((s) => readsTensor(s, updates))))) return undefined
  for (const { name, updates } of updated) {
    const own = tensors.find((tensor) => tensor.name === name)
    if (updated.length > 1 && own?.layout.name !== 'row')
      return new UpdateConflict(
        name,
        'several tensors are replaced together where each of them is row-major, and this one is not',
      )
    const elsewhere = body.some((s) => readsElsewhere(s, updates, kernel))
    if (elsewhere)
      return new UpdateConflict(name, `another element of ${updates} than the one that is replaced is read`, {
        hint: `an element replaces itself; to add what falls to it, let it gather: ${updates}(k) + sum(t, (i) => (place(i) === k ? x(i) : 0))`,
      })
  }
  return 'whole'
}

/** Whether a store runs over the same elements as another: all row indices as the kernel has them, and a row of one length. */
function runsOver(s: StmtOf<'store'> | StmtOf<'storeRow'>, first: typeof s, rows: Kernel['rows']): boolean {
  const places = s.kind === 'store' ? s.indices : s.rows
  if (places.length !== rows.length || !places.every((at, i) => at.kind === 'index' && at.name === rows[i]?.index)) return false
  if (s.kind === 'store') return rows.length > 0
  return (
    first.kind === 'storeRow' && s.length.kind === 'dim' && first.length.kind === 'dim' && s.length.name === first.length.name
  )
}

/** Whether a statement reads any element of a tensor. */
function readsTensor(s: Stmt, tensor: string): boolean {
  let found = false
  for (const expr of stmtExprs(s))
    visit(expr, (node) => {
      found ||= node.kind === 'load' && node.tensor === tensor
    })
  return found
}

/** Whether a statement reads a tensor at another place than the element that its elements are of. */
function readsElsewhere(s: Stmt, tensor: string, { rows }: Kernel): boolean {
  const own = [...rows.map(({ index }) => index), ...(s.kind === 'storeRow' ? [s.index] : [])]
  let found = false
  const see = (node: Expr): void => {
    if (node.kind !== 'load' || node.tensor !== tensor) return
    const same = node.indices.length === own.length && node.indices.every((at, i) => at.kind === 'index' && at.name === own[i])
    found ||= !same
  }
  for (const expr of stmtExprs(s)) visit(expr, see)
  return found
}
