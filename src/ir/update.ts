/**
 * In-place updates: outputs that equal an input except for some elements, such as a cache of keys with one more step. The body
 * defines every element, as any body does; the kernel that runs replaces elements in the input's memory and leaves the others alone.
 * If the condition selects one position of an axis, the kernel does not run over that axis. Under any other condition it tests every
 * element and stores where the condition holds; scheduling narrows this to an interval of positions if it finds one
 * (src/schedule/divided/update_range.ts). A kernel that computes every element by itself may replace all of them, and read the replaced elements:
 * weights and moments of an optimiser (src/ir/update_whole.ts). Derived when an op or a group is read, to refuse unsupported updates,
 * and again when a kernel is scheduled.
 */
import { call, dim, i32, index } from './build.js'
import type { Expr, ExprOf } from './expr.js'
import { hashOf } from './expr_hash.js'
import type { Kernel, Stmt, StmtOf, TensorParam } from './kernel.js'
import { freshName } from './names.js'
import { bufferRows } from './update_buffered.js'
import { UpdateConflict } from './update_conflict.js'
import { numbersBeside, readNumbersFirst } from './update_numbers.js'
import { isUpdating, readFirst, replacesWhole } from './update_whole.js'
import { freeNames, introducedNames, mapStmt, stmtExprs, substitute, visit } from './walk.js'

export { UpdateConflict } from './update_conflict.js'
export { isUpdating } from './update_whole.js'

type Store = StmtOf<'store'> | StmtOf<'storeRow'>

/** An output of the form `condition ? value : the same element of the updated input`. */
interface Choice {
  readonly stmt: Store
  readonly param: TensorParam
  readonly condition: Expr
  readonly value: Expr
}

/** A choice whose condition is `place === axis`. */
interface Update extends Choice {
  /** Index variable of the axis, and its number among the tensor's axes. */
  readonly axis: string
  readonly position: number
  readonly place: Expr
}

/**
 * Rewrites a kernel to store the new elements only. It runs over all axes except that of the positions, or over all of them if a
 * condition does not select a position. It does not read the updated input, unless each element is replaced by a function of itself.
 * A kernel that updates nothing is returned unchanged.
 * @throws UpdateConflict naming the output and the reason
 */
export function placeUpdates(kernel: Kernel): Kernel {
  if (!isUpdating(kernel)) return kernel
  try {
    return placeChoices(kernel)
  } catch (error) {
    if (!(error instanceof UpdateConflict)) throw error
    return placeAll(kernel, error)
  }
}

/**
 * Rewrites a kernel to replace every element: each by itself, or rows that are buffered whole, and besides these numbers that are read first.
 * @param conflict reason why its outputs are not choices that select a position
 */
function placeAll(kernel: Kernel, conflict: UpdateConflict): Kernel {
  const numbers = conflict.isUnchosen ? numbersBeside(kernel) : new Set<string>()
  const first = numbers.size === 0 ? kernel : readNumbersFirst(kernel, numbers)
  const others = first.tensors.map(({ updates, ...tensor }) =>
    updates === undefined || numbers.has(tensor.name) ? tensor : { ...tensor, updates },
  )
  const rest: Kernel = { ...first, tensors: others }
  if (!isUpdating(rest)) return first
  const whole = replacesWhole(rest, conflict)
  if (whole === 'whole') return readFirst(first)
  const buffered = conflict.isUnchosen ? bufferRows(rest) : undefined
  if (buffered === undefined) throw whole ?? conflict
  return { ...buffered, tensors: kernel.tensors }
}

/** Rewrites a kernel whose outputs are all choices to store the chosen elements. */
function placeChoices(kernel: Kernel): Kernel {
  const stores = kernel.body.flatMap((stmt) => ('tensor' in stmt ? [stmt] : []))
  const isReplaced = ({ tensor }: (typeof stores)[number]): boolean =>
    kernel.tensors.some(({ name, updates }) => name === tensor && updates !== undefined)
  // Stores that update nothing are refused after the updating ones, which decide if every element may be replaced.
  const choices = stores.filter(isReplaced).map((s) => choiceOf(s, kernel))
  const updates = choices.flatMap((choice) => placeOf(choice) ?? [])
  const beside = stores.find((s) => !isReplaced(s))
  if (beside !== undefined) {
    const reason = 'a kernel that replaces elements in place stores nothing else: every output must update an input'
    const hint = `split it into two ops: one that replaces the chosen elements, and one that computes ${beside.tensor}`
    throw new UpdateConflict(beside.tensor, reason, { isUnchosen: updates.length === 0, hint })
  }
  if (updates.length < choices.length) return { ...kernel, body: kernel.body.map((stmt) => whereChosen(stmt, choices)) }
  if (updates.some(({ stmt, place }) => stmt.kind === 'storeRow' && freeNames(place).has(stmt.index)))
    return placeChoices(overElements(kernel))
  const rowAxis = updates.map(({ axis }) => axis).find((axis) => kernel.rows.some((row) => row.index === axis))
  const other = updates.find(({ axis }) => rowAxis !== undefined && axis !== rowAxis)
  if (other !== undefined)
    throw new UpdateConflict(other.param.name, 'all outputs of one kernel must be replaced along the same axis', {
      hint: `make ${other.param.name} the output of a separate op`,
    })
  const lets = rowAxis === undefined ? new Map<string, Expr>() : letsAlong(rowAxis, kernel)
  const names = new Set([...kernel.dims, ...kernel.tensors.map(({ name }) => name), ...kernel.attrs.map(({ name }) => name)])
  for (const stmt of kernel.body) for (const name of introducedNames(stmt)) names.add(name)
  for (const row of kernel.rows) names.add(row.index)
  const places = new Places(names)
  const body = kernel.body.flatMap((stmt): Stmt[] => {
    const update = updates.find((each) => each.stmt === stmt)
    if (update !== undefined) return places.store({ ...update, value: substitute(update.value, lets) })
    if (stmt.kind === 'let' && lets.has(stmt.name)) return []
    if (rowAxis !== undefined && stmtExprs(stmt).some((expr) => freeNames(substitute(expr, lets)).has(rowAxis))) {
      const name = updates[0]?.param.name ?? ''
      const along = kernel.rows.find((row) => row.index === rowAxis)?.dim
      throw new UpdateConflict(
        name,
        `a row or reduction of the body depends on the index of dimension ${along}, on which only elements may depend`,
        { hint: 'compute it in a separate op, whose output the new elements read' },
      )
    }
    return [mapStmt(stmt, (expr) => substitute(expr, lets))]
  })
  return { ...kernel, rows: kernel.rows.filter(({ index: name }) => name !== rowAxis), body }
}

/** The kernel with the axis along which rows are stored as its last row axis, so that every element has its own position. */
function overElements(kernel: Kernel): Kernel {
  const [first] = kernel.body.filter((stmt): stmt is StmtOf<'storeRow'> => stmt.kind === 'storeRow')
  if (first?.length.kind !== 'dim') throw new Error(`internal: ${kernel.name} has no row of elements to place`)
  const { name } = first.length
  const at = index(first.index)
  const body = kernel.body.map((stmt): Stmt => {
    if (stmt.kind === 'let') return stmt
    if (stmt.kind !== 'storeRow' || stmt.length.kind !== 'dim' || stmt.length.name !== name) {
      throw new UpdateConflict(
        first.tensor,
        'elements that are replaced one by one cannot be combined with a row, a reduction or another length',
        {
          hint: 'compute rows and reductions in a separate op, whose outputs the new elements read',
        },
      )
    }
    const moved = (expr: Expr): Expr => substitute(expr, new Map([[stmt.index, at]]))
    return { kind: 'store', tensor: stmt.tensor, indices: [...stmt.rows, at], value: moved(stmt.value) }
  })
  return { ...kernel, rows: [...kernel.rows, { index: first.index, dim: name }], body }
}

/** Stores the new value where the condition holds. */
function whereChosen(stmt: Stmt, choices: readonly Choice[]): Stmt {
  const choice = choices.find((each) => each.stmt === stmt)
  return choice === undefined ? stmt : { ...choice.stmt, value: choice.value, when: choice.condition }
}

/** Reads a store as an update. */
function choiceOf(stmt: Store | StmtOf<'histogram'>, kernel: Kernel): Choice {
  const refuse = (reason: string, isUnchosen = false, hint?: string): never => {
    throw new UpdateConflict(stmt.tensor, reason, { isUnchosen, ...(hint === undefined ? {} : { hint }) })
  }
  const param = kernel.tensors.find(({ name }) => name === stmt.tensor)
  const before = param?.updates
  if (param === undefined || before === undefined) throw new Error(`internal: ${stmt.tensor} updates nothing`)
  if (stmt.kind === 'histogram') return refuse(`it is a histogram, expected an element of ${before} or its replacement`)
  const indices = indicesOf(stmt)
  const written = new Map(kernel.body.flatMap((other) => (other.kind === 'let' ? [[other.name, other.value] as const] : [])))
  const value = resolve(stmt.value, written)
  const [condition, replacement, unchanged] = value.kind === 'call' && value.fn === 'select' ? value.args : []
  if (
    condition === undefined ||
    replacement === undefined ||
    unchanged === undefined ||
    !isElement(resolve(unchanged, written), before, indices)
  )
    return refuse(`it does not have the form condition ? new : the same element of ${before}`, true)
  const whole = unfold(condition, written)
  if (reads(whole, before) || reads(unfold(replacement, written), before))
    return refuse(`the new value reads ${before}, which is being replaced`, true)
  return { stmt, param, condition: whole, value: replacement }
}

const indicesOf = (stmt: Store): readonly Expr[] => (stmt.kind === 'store' ? stmt.indices : [...stmt.rows, index(stmt.index)])

/** The position that a condition selects along an axis of the output; undefined for any other condition. */
function placeOf(choice: Choice): Update | undefined {
  const { stmt, condition } = choice
  const [left, right] = condition.kind === 'call' && condition.fn === 'eq' ? condition.args : []
  const indices = indicesOf(stmt)
  for (const [axis, place] of [
    [left, right],
    [right, left],
  ]) {
    if (axis?.kind !== 'index' || place === undefined || freeNames(place).has(axis.name)) continue
    const position = indices.findIndex((at) => at.kind === 'index' && at.name === axis.name)
    if (position >= 0) return { ...choice, axis: axis.name, position, place }
  }
  return undefined
}

const isElement = (expr: Expr, tensor: string, indices: readonly Expr[]): boolean =>
  expr.kind === 'load' &&
  expr.tensor === tensor &&
  expr.indices.every((at, i) => at.kind === 'index' && indices[i]?.kind === 'index' && at.name === indices[i].name)

function reads(expr: Expr, tensor: string): boolean {
  let found = false
  visit(expr, (node) => {
    found ||= node.kind === 'load' && node.tensor === tensor
  })
  return found
}

/** Looks through named values. */
function resolve(expr: Expr, lets: ReadonlyMap<string, Expr>): Expr {
  const value = expr.kind === 'local' ? lets.get(expr.name) : undefined
  return value === undefined ? expr : resolve(value, lets)
}

/** Inlines every named scalar in an expression. */
function unfold(expr: Expr, lets: ReadonlyMap<string, Expr>): Expr {
  const once = substitute(expr, lets)
  return once === expr ? expr : unfold(once, lets)
}

/** The scalars that depend on an axis, inlined. */
function letsAlong(axis: string, { body }: Kernel): Map<string, Expr> {
  const found = new Map<string, Expr>()
  for (const stmt of body) {
    if (stmt.kind !== 'let') continue
    const value = substitute(stmt.value, found)
    if (freeNames(value).has(axis)) found.set(stmt.name, value)
  }
  return found
}

/** Positions of stores, each bound once to a local, with a flag that is true if it is in bounds. */
class Places {
  readonly #names: Set<string>
  readonly #known: { readonly key: string; readonly at: Expr; readonly inside: Expr }[] = []

  constructor(names: Set<string>) {
    this.#names = names
  }

  store({ stmt, param, axis, position, place, value }: Update): Stmt[] {
    const lets: Stmt[] = []
    const { at, inside } = this.#named(place, dim(param.dims[position] ?? ''), lets)
    const moved = (expr: Expr): Expr => substitute(expr, new Map([[axis, at]]))
    if (stmt.kind === 'storeRow' && stmt.index !== axis)
      return [...lets, { ...stmt, rows: stmt.rows.map(moved), value: moved(value), when: inside }]
    const indices = indicesOf(stmt)
    return [...lets, { kind: 'store', tensor: stmt.tensor, indices: indices.map(moved), value: moved(value), when: inside }]
  }

  #named(place: Expr, extent: Expr, lets: Stmt[]): { readonly at: Expr; readonly inside: Expr } {
    const key = `${hashOf(place)} ${hashOf(extent)}`
    const known = this.#known.find((each) => each.key === key)
    if (known !== undefined) return known
    const at: ExprOf<'local'> = { kind: 'local', type: 'i32', name: freshName('place', this.#names) }
    const inside: ExprOf<'local'> = { kind: 'local', type: 'bool', name: freshName('inside', this.#names) }
    lets.push(
      { kind: 'let', name: at.name, type: 'i32', value: place },
      { kind: 'let', name: inside.name, type: 'bool', value: call('and', call('ge', at, i32(0)), call('lt', at, extent)) },
    )
    this.#known.push({ key, at, inside })
    return { at, inside }
  }
}
