/**
 * In-place updates of whole tensors, where each element is replaced by a function of itself: `p2(c) = p(c) - rate * m(c)`, several
 * tensors in one kernel. A thread reads an element before it writes it and no other thread reads it, so old and new may share memory. The
 * function may add a reduction over rows or columns of other tensors: a gradient that is accumulated.
 * Tried when an output is not a choice between a new value and the old element (src/ir/update.ts).
 */
import { local } from './build.js'
import { stepRows } from './constructs/fold_state.js'
import type { Expr, ExprOf } from './expr.js'
import type { Kernel, Stmt, StmtOf } from './kernel.js'
import { freshName } from './names.js'
import { UpdateConflict } from './update_conflict.js'
import { introducedNames, mapStmt, rewrite, stmtExprs, visit } from './walk.js'

type Store = StmtOf<'store'> | StmtOf<'storeRow'>

/** True if a kernel updates inputs in place. */
export const isUpdating = ({ tensors }: Pick<Kernel, 'tensors'>): boolean => tensors.some(({ updates }) => updates !== undefined)

/**
 * `whole` if updated tensors are read at the element that replaces them and nowhere else. A conflict if the stores have this form but
 * something is read elsewhere; undefined if the kernel has another form.
 * @param conflict reason why its outputs are not choices that select a position
 */
export function replacesWhole(kernel: Kernel, { isUnchosen }: UpdateConflict): 'whole' | UpdateConflict | undefined {
  const { body, tensors, rows } = kernel
  const stores = body.filter((s): s is Store => s.kind === 'store' || s.kind === 'storeRow')
  const updated = tensors.flatMap(({ name, updates }) => (updates === undefined ? [] : [{ name, updates }]))
  const replaced = stores.filter((s) => updated.some(({ name }) => name === s.tensor))
  const [first] = replaced
  if (first === undefined || body.some(({ kind }) => kind === 'histogram')) return undefined
  // Besides rows, one number per row may be stored that updates nothing.
  const along = stores.filter(
    (s) => replaced.includes(s) || ((s.kind === first.kind || s.kind === 'storeRow') && !isOfSteps(s, body)),
  )
  if (along.some((s) => s.kind !== first.kind || s.when !== undefined || !runsOver(s, first, rows))) return undefined
  // Threads of a row compute its other statements together, before the updating stores.
  const others = body.filter(({ kind }) => kind !== 'store' && kind !== 'storeRow')
  const isReduced = others.some(({ kind }) => kind !== 'let')
  if (isReduced && !isUnchosen) return undefined
  const tainted = new Set<string>()
  for (const { name, updates } of updated) {
    const own = tensors.find((tensor) => tensor.name === name)
    if (updated.length > 1 && own?.layout.name !== 'row')
      return new UpdateConflict(name, 'several tensors can be replaced together only if all are row-major, and this one is not', {
        hint: `make ${name} the output of a separate op`,
      })
    for (const s of body) {
      if (readsElsewhere(s, updates, first, kernel) || (isReduced && readsRowElsewhere(s, tainted)))
        return new UpdateConflict(name, `it reads another element of ${updates} than the one that it replaces`, {
          hint: gatherHint(updates, name),
        })
      if (!isReduced || !others.includes(s) || !(readsTensor(s, updates) || readsRows(s, tainted))) continue
      // One number per row is read before everything else (`readFirst`), and replaced after a barrier of the row's threads.
      if (stores.every(({ kind }) => kind === 'store')) continue
      // A recurrence that carries a row has read all of it before the stores, except for the stores of its steps.
      const isCarried = s.kind === 'foldState' && !replaced.some((store) => isOfSteps(store, body))
      if (!isCarried && ((s.kind !== 'row' && s.kind !== 'reduce') || !walksAlong(s, first)))
        return new UpdateConflict(
          name,
          `${updates}, which is being replaced, is read by more than rows and reductions along the elements that are stored`,
          {
            hint: `read ${updates} in the value of the output itself, or in rows and reductions along the row that is stored`,
          },
        )
      if (s.kind === 'row') tainted.add(s.name)
    }
  }
  return 'whole'
}

/**
 * Hoists reads of memory that another store updates to the beginning of the kernel: a running mean that a running variance reads, a flag
 * that selects the new value. Stores along rows read a chunk of all their inputs before they write it.
 */
export function readFirst(kernel: Kernel): Kernel {
  const { body, tensors, rows } = kernel
  if (body.every(({ kind }) => kind === 'let' || kind === 'store' || kind === 'storeRow')) return kernel
  const crossed = tensors.flatMap(({ name, updates }) =>
    updates !== undefined && body.some((s) => !(s.kind === 'store' && s.tensor === name) && readsTensor(s, updates))
      ? [updates]
      : [],
  )
  if (crossed.length === 0 || body.some(({ kind }) => kind === 'storeRow')) return kernel
  const taken = new Set([...kernel.dims, ...kernel.attrs.map(({ name }) => name), ...tensors.map(({ name }) => name)])
  for (const { index } of rows) taken.add(index)
  for (const s of body) for (const name of introducedNames(s)) taken.add(name)
  const names = new Map(crossed.map((tensor) => [tensor, freshName(`${tensor}_before`, taken)]))
  const firsts = new Map<string, Stmt>()
  const read = (e: Expr): Expr => {
    const name = e.kind === 'load' ? names.get(e.tensor) : undefined
    if (name === undefined) return e
    firsts.set(name, { kind: 'let', name, type: e.type, value: e })
    return local(name, e.type)
  }
  const rest = body.map((s) => mapStmt(s, (e) => rewrite(e, read)))
  return { ...kernel, body: [...firsts.values(), ...rest] }
}

const gatherHint = (tensor: string, output: string): string =>
  `to accumulate into an element, let it gather: ${tensor}(k) + sum(t, (i) => (place(i) === k ? x(i) : 0)); to read other rows, leave ${output} out of updates: it then has its own memory`

/** True if a row or a reduction runs over the elements of a stored row, so that the thread which reads an element also stores it. */
const walksAlong = (s: StmtOf<'row'> | StmtOf<'reduce'>, first: Store): boolean =>
  first.kind === 'storeRow' && s.length.kind === 'dim' && first.length.kind === 'dim' && s.length.name === first.length.name

/** True if a store has one element per step of a recurrence with row state, and is computed in that step. */
const isOfSteps = (s: Store, body: Kernel['body']): boolean =>
  s.kind === 'storeRow' && s.value.kind === 'element' && stepRows(body).has(s.value.row)

/** True if a store runs over the same elements as another: all row indices in the kernel's order, and a row of the same length. */
function runsOver(s: Store, first: Store, rows: Kernel['rows']): boolean {
  const places = s.kind === 'store' ? s.indices : s.rows
  if (places.length !== rows.length || !places.every((at, i) => at.kind === 'index' && at.name === rows[i]?.index)) return false
  if (s.kind === 'store') return rows.length > 0
  return (
    first.kind === 'storeRow' && s.length.kind === 'dim' && first.length.kind === 'dim' && s.length.name === first.length.name
  )
}

/** True if a statement reads any element of a tensor. */
function readsTensor(s: Stmt, tensor: string): boolean {
  let found = false
  for (const expr of stmtExprs(s))
    visit(expr, (node) => {
      found ||= node.kind === 'load' && node.tensor === tensor
    })
  return found
}

/** True if a statement reads elements of rows. */
const readsRows = (s: Stmt, names: ReadonlySet<string>): boolean => elementsOf(s).some(({ row }) => names.has(row))

/** True if a statement reads rows at another index than that of its own elements, where they would be recomputed. */
const readsRowElsewhere = (s: Stmt, names: ReadonlySet<string>): boolean =>
  elementsOf(s).some(({ row, index }) => names.has(row) && !('index' in s && index.kind === 'index' && index.name === s.index))

function elementsOf(s: Stmt): ExprOf<'element'>[] {
  const found: ExprOf<'element'>[] = []
  for (const expr of stmtExprs(s))
    visit(expr, (node) => {
      if (node.kind === 'element') found.push(node)
    })
  return found
}

/** True if a statement reads a tensor at another position than that of its own elements. */
function readsElsewhere(s: Stmt, tensor: string, first: Store, { rows }: Kernel): boolean {
  const isAlong = first.kind === 'storeRow' && (s.kind === 'storeRow' || s.kind === 'row' || s.kind === 'reduce')
  const along = s.kind === 'foldState' ? [s.column] : isAlong ? [s.index] : []
  const own = [...rows.map(({ index }) => index), ...along]
  let found = false
  const see = (node: Expr): void => {
    if (node.kind !== 'load' || node.tensor !== tensor) return
    const same = node.indices.length === own.length && node.indices.every((at, i) => at.kind === 'index' && at.name === own[i])
    found ||= !same
  }
  for (const expr of stmtExprs(s)) visit(expr, see)
  return found
}
