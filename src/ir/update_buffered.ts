/**
 * In-place updates of rows that are read at other positions: a window of the last inputs that moves on by one,
 * `next(c) = c === w - 1 ? x : state(c + 1)`. The new row is computed as a whole first, as a row that the threads of the row
 * buffer, and replaces the memory after a barrier. Rows of other indices belong to other threads, so they are not read.
 * Tried when outputs cannot be replaced element by element (src/ir/update_whole.ts).
 */
import { dim, index } from './build.js'
import { stepRows } from './constructs/fold_state.js'
import { longestWhole, sharedWords, wordsOf } from './constructs/shared_memory.js'
import type { Expr } from './expr.js'
import type { Kernel, Stmt, StmtOf } from './kernel.js'
import { freshName } from './names.js'
import { freeNames, introducedNames, mapStmt, stmtExprs, substitute, visit } from './walk.js'

/** Least free shared memory, in words, for which rows are buffered. */
const fewestWords = 1024

/** A kernel that stores rows, and the axis of the updated tensor that runs along them. */
interface InRows {
  readonly kernel: Kernel
  readonly axis: number
}

/**
 * Rewrites a kernel to buffer whole rows before they are stored; undefined if no row is read at another position, or if another row of an
 * updated tensor is read.
 */
export function bufferRows(given: Kernel): Kernel | undefined {
  for (const { kernel, axis } of formsOf(given)) {
    const updated = new Set(kernel.tensors.flatMap(({ updates }) => updates ?? []))
    const replaced = storesOf(kernel)
    if (replaced === undefined || kernel.body.some((s) => readsOtherRow(s, updated, kernel, axis))) continue
    const reads = readsOf(kernel, updated, axis)
    if (!kernel.body.some((s) => needsAll(s, replaced, reads))) continue
    const buffered = replaced.filter((s) => readsFar(s.value, s.index, reads) || readsBeside(s, kernel, reads))
    if (wordsOf(kernel.body) + fewestWords > sharedWords) return undefined
    // If only other statements read elsewhere, the threads still need a barrier before one of them stores.
    return withBuffered(kernel, buffered.length === 0 ? replaced.slice(0, 1) : buffered)
  }
  return undefined
}

/** True if a statement needs elements of an updated tensor besides those of the current thread. */
function needsAll(s: Stmt, [first]: readonly StmtOf<'storeRow'>[], reads: Reads): boolean {
  const own = 'index' in s ? s.index : ''
  if (stmtExprs(s).some((expr) => readsFar(expr, own, reads))) return true
  if (s.kind === 'let' || s.kind === 'store' || s.kind === 'storeRow') return false
  const isAlong = s.length.kind === 'dim' && first?.length.kind === 'dim' && s.length.name === first.length.name
  return !((s.kind === 'row' || s.kind === 'reduce') && isAlong) && stmtExprs(s).some((expr) => readsAny(expr, reads))
}

/** Inserts rows that hold the values of stores, before these stores. */
function withBuffered(kernel: Kernel, buffered: readonly Stmt[]): Kernel {
  const taken = namesOf(kernel)
  const room = Math.min(longestWhole, sharedWords - wordsOf(kernel.body)) / buffered.length
  const most = 2 ** Math.floor(Math.log2(room))
  const body = kernel.body.flatMap((s): Stmt[] => {
    if (s.kind !== 'storeRow' || !buffered.includes(s)) return [s]
    const [name, at] = [freshName(`${s.tensor}_whole`, taken), freshName(s.index, taken)]
    const value = substitute(s.value, new Map([[s.index, index(at)]]))
    const { type } = value
    return [
      { kind: 'row', name, type, index: at, length: s.length, value, kept: most },
      { ...s, value: { kind: 'element', type, row: name, index: index(s.index) } },
    ]
  })
  return { ...kernel, body }
}

function namesOf({ dims, attrs, tensors, rows, body }: Kernel): Set<string> {
  const named = [...attrs, ...tensors].map(({ name }) => name)
  return new Set([...dims, ...named, ...rows.map((row) => row.index), ...body.flatMap(introducedNames)])
}

/** Candidate forms: the kernel itself if it stores rows, and its outputs as rows along each of its axes, the last axis first. */
function formsOf(kernel: Kernel): readonly InRows[] {
  const inRows = kernel.body.some(({ kind }) => kind === 'storeRow')
  const elements = inRows ? overElements(kernel) : kernel
  const along = elements?.rows.flatMap((_, axis) => overRows(elements, axis) ?? []) ?? []
  return [...(inRows ? [{ kernel, axis: kernel.rows.length }] : []), ...along.reverse()]
}

/** Converts a kernel of rows of one length to one of elements; undefined if it has other statements than named scalars. */
function overElements(kernel: Kernel): Kernel | undefined {
  const [first] = kernel.body.filter((s): s is StmtOf<'storeRow'> => s.kind === 'storeRow')
  if (first?.length.kind !== 'dim') return undefined
  const along = first.length.name
  const isOfElements = (s: Stmt): boolean =>
    s.kind === 'let' || (s.kind === 'storeRow' && s.length.kind === 'dim' && s.length.name === along)
  if (!kernel.body.every(isOfElements)) return undefined
  const at = index(first.index)
  const body = kernel.body.map((s): Stmt => {
    if (s.kind !== 'storeRow') return s
    const moved = substitute(s.value, new Map([[s.index, at]]))
    const when = s.when === undefined ? {} : { when: substitute(s.when, new Map([[s.index, at]])) }
    return { kind: 'store', tensor: s.tensor, indices: [...s.rows, at], value: moved, ...when }
  })
  return { ...kernel, rows: [...kernel.rows, { index: first.index, dim: along }], body }
}

/** Converts a kernel of elements to one that stores rows along an axis; undefined if a reduction or a row depends on the axis. */
function overRows(kernel: Kernel, axis: number): InRows | undefined {
  const { body, rows } = kernel
  const along = rows[axis]
  if (along === undefined) return undefined
  const taken = namesOf(kernel)
  const lets = new Map<string, Expr>()
  const stmts: Stmt[] = []
  for (const given of body) {
    const s = mapStmt(given, (expr) => substitute(expr, lets))
    if (s.kind === 'let' && freeNames(s.value).has(along.index)) lets.set(s.name, s.value)
    else if (s.kind === 'store') {
      if (s.when !== undefined || !areIndices(s.indices, rows)) return undefined
      const at = freshName(along.index, taken)
      const value = substitute(s.value, new Map([[along.index, index(at)]]))
      const stored = { tensor: s.tensor, rows: s.indices.toSpliced(axis, 1), index: at, length: dim(along.dim), value }
      stmts.push({ kind: 'storeRow', ...stored, ...(axis === rows.length - 1 ? {} : { axis }) })
    } else if (stmtExprs(s).some((expr) => freeNames(expr).has(along.index))) return undefined
    else stmts.push(s)
  }
  return { kernel: { ...kernel, rows: rows.toSpliced(axis, 1), body: stmts }, axis }
}

const areIndices = (at: readonly Expr[], rows: Kernel['rows']): boolean =>
  at.length === rows.length && at.every((each, i) => each.kind === 'index' && each.name === rows[i]?.index)

/** Stores to updated tensors; undefined unless each stores a row at its own row's indices, after all steps of recurrences. */
function storesOf({ body, tensors, rows }: Kernel): readonly StmtOf<'storeRow'>[] | undefined {
  const outputs = new Set(tensors.flatMap(({ name, updates }) => (updates === undefined ? [] : [name])))
  const stores = body.filter((s) => 'tensor' in s && outputs.has(s.tensor))
  const found = stores.filter((s): s is StmtOf<'storeRow'> => s.kind === 'storeRow')
  const ofSteps = stepRows(body)
  const isPlain = (s: StmtOf<'storeRow'>): boolean =>
    s.when === undefined && areIndices(s.rows, rows) && !(s.value.kind === 'element' && ofSteps.has(s.value.row))
  return found.length === stores.length && found.every(isPlain) ? found : undefined
}

/** True if a statement reads an updated tensor outside the row of its own indices. */
function readsOtherRow(s: Stmt, updated: ReadonlySet<string>, { rows }: Kernel, axis: number): boolean {
  let found = false
  for (const expr of stmtExprs(s))
    visit(expr, (node) => {
      if (node.kind === 'load' && updated.has(node.tensor)) found ||= !areIndices(node.indices.toSpliced(axis, 1), rows)
    })
  return found
}

/** Rows that depend on updated tensors: `far` if an element depends on more than the element of its own index. */
type Made = ReadonlyMap<string, 'own' | 'far'>

/** Updated tensors, the axis along which they are updated, and the rows that depend on them. */
interface Reads {
  readonly updated: ReadonlySet<string>
  readonly axis: number
  readonly made: Made
}

function readsOf({ body }: Kernel, updated: ReadonlySet<string>, axis: number): Reads {
  const made = new Map<string, 'own' | 'far'>()
  const reads: Reads = { updated, axis, made }
  for (const s of body) {
    if (s.kind === 'let' || s.kind === 'reduce' || s.kind === 'merge' || !stmtExprs(s).some((e) => readsAny(e, reads))) continue
    const how = s.kind === 'row' && !readsFar(s.value, s.index, reads) ? 'own' : 'far'
    for (const name of introducedNames(s)) made.set(name, how)
  }
  return reads
}

/** True if an element depends on other updated tensors, which may have been stored by then. */
function readsBeside(s: StmtOf<'storeRow'>, { tensors }: Kernel, { updated, made }: Reads): boolean {
  const own = tensors.find(({ name }) => name === s.tensor)?.updates
  const others = new Set([...updated].filter((name) => name !== own))
  return readsAny(s.value, { updated: others, made })
}

function readsAny(value: Expr, { updated, made }: Pick<Reads, 'updated' | 'made'>): boolean {
  let found = false
  visit(value, (node) => {
    found ||= (node.kind === 'load' && updated.has(node.tensor)) || (node.kind === 'element' && made.has(node.row))
  })
  return found
}

/** True if the element at index `own` depends on another element of an updated tensor. */
function readsFar(value: Expr, own: string, { updated, axis, made }: Reads): boolean {
  const isOwn = (at: Expr | undefined): boolean => at?.kind === 'index' && at.name === own
  let found = false
  visit(value, (node) => {
    if (node.kind === 'load' && updated.has(node.tensor)) found ||= !isOwn(node.indices[axis])
    if (node.kind === 'element') found ||= made.get(node.row) === 'far' || (made.has(node.row) && !isOwn(node.index))
  })
  return found
}
