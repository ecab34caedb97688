/**
 * The cached keys or values that decode attention reads, and the group's append to the cache. A cache is read row by row, or through a table with the
 * owner of each position's row. Rows may be integers with one scale per row, which then multiplies scores and weights. Keys and values are each
 * derived separately.
 */
import { call, i32, index, local } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import type { NodeOf, ValueId } from '../../ir/graph.js'
import type { CacheAccess, RowAccess } from '../../ir/template.js'
import { freeNames, rewrite, substitute } from '../../ir/walk.js'
import { valueAt } from '../graph/edit.js'
import { equalExprs } from '../space/positions.js'
import { illegal, type Member } from '../space/space.js'
import { type AttentionGroup, elementOf, rowAt } from './elements.js'
import { unknownLayout } from './operands.js'
import type { RoleOperand } from './roles.js'

/** The row that a step adds to a cache. */
export interface DecodeStep {
  readonly append: Member
  /** The cache with the step, and the address of its rows. */
  readonly cached: ValueId
  readonly row: RowAccess
  readonly place: Expr
  /** Element `c` of head `h` of sequence `b`. */
  readonly element: Expr
}

export interface DecodePast {
  /** The sequence that owns the row of position `j` of sequence `b`. */
  readonly owner: Expr
  /** Number of consecutive query heads that share one cached head; undefined if all do. `h` below is the cached head. */
  readonly shared: Expr | undefined
  /** The row in memory of position `j` of the local `owner`. */
  readonly access: CacheAccess
  readonly fresh: DecodeStep | undefined
  readonly members: readonly Member[]
}

/** @throws usage `plan.illegal` naming two nodes where rows of `id` are computed in any other way */
export function pastOf(group: AttentionGroup, { value: id, axes }: RoleOperand, product: NodeOf<'matmul'>): DecodePast {
  const { graph, name, around, slots, layouts } = group
  const members = around.before(id)
  const refuse = (reason: string) => illegal(name, members.at(-1)?.node.name ?? product.name, product.name, reason)
  const { element: whole, shared } = sharedBy(members.length === 0 ? inMemory() : madeBy())
  function inMemory(): Expr {
    const { shape, layout } = valueAt(graph.values, id)
    if (layout !== 'row' && !layouts.has(layout)) throw refuse(unknownLayout(layout))
    return { kind: 'load', type: 'f32', tensor: slots.tensor(id, shape, 'in', layouts.get(layout)), indices: axes }
  }
  function madeBy(): Expr {
    const { shape } = valueAt(graph.values, id)
    const piece = elementOf(group, members, around.through(id), { shape, axes })
    return slots.inKernelNames(piece, piece.value, undefined)
  }
  const written = placed(whole)
  const { row, scale } = splitScale(written?.kept ?? whole)
  if (row.kind !== 'load')
    throw refuse(
      'decode attention reads cached rows as they are stored, or times one scale per row of a head; it cannot compute them',
    )
  if (scale !== undefined && written !== undefined)
    throw refuse('it reads a cache with one scale per row, and appends a step to it')
  const owner = row.indices.find((place) => freeNames(place).has('b')) ?? i32(0)
  const roles = row.indices.map((place) => (equalExprs(place, owner) ? index('b') : place))
  const access = rowAt(
    row.tensor,
    roles.map((place) => (equalExprs(place, index('b')) ? local('owner', 'i32') : place)),
  )
  const isPlace = (place: Expr): boolean => place.kind === 'index' || (place.kind === 'const' && freeNames(place).size === 0)
  if (access === undefined || ![...freeNames(owner)].every((free) => free === 'b' || free === 'j') || !roles.every(isPlace))
    throw refuse(notInRows(id, axes, product))
  const fresh = written === undefined ? undefined : stepOf(group, members, { ...row, indices: roles }, owner, written, product)
  return {
    owner,
    shared,
    access: { ...access, ...(scale === undefined ? {} : { scale: ofOwner(scale, owner, refuse) }) },
    fresh,
    members,
  }
}

/** Reason why a matmul's cached operand is not read in one row per position, in terms of the matmul's axes. */
function notInRows(id: ValueId, axes: readonly Expr[], { name, subscripts, a }: NodeOf<'matmul'>): string {
  const written = subscripts[a === id ? 'a' : 'b']
  const at = axes.findIndex((axis) => equalExprs(axis, index('c')))
  const along = written[at] ?? 'c'
  const rows = `attention reads the past in rows along ${along}, one per position`
  if (at === axes.length - 1)
    return `${name} reads the past as "${written.join(' ')}", but not in its own order: ${rows}, of the sequence or of another that a table names`
  const wanted = [...written.filter((_, axis) => axis !== at), along].join(' ')
  return `${name} reads the past as "${written.join(' ')}": ${rows}, so store it with ${along} last, as "${wanted}"`
}

/** Splits an element of a row into the loaded value and a factor that is uniform over the row. */
function splitScale(element: Expr): { readonly row: Expr; readonly scale: Expr | undefined } {
  const factors: Expr[] = []
  const take = (expr: Expr): void => {
    if (expr.kind === 'call' && expr.fn === 'mul') expr.args.forEach(take)
    else factors.push(expr)
  }
  take(element)
  const [row, ...others] = factors.filter((factor) => freeNames(factor).has('c'))
  const [first, ...more] = factors.filter((factor) => !freeNames(factor).has('c'))
  if (row === undefined || first === undefined || others.length > 0) return { row: element, scale: undefined }
  return { row, scale: more.reduce((left, right) => call('mul', left, right), first) }
}

/** The scale of a row in terms of its owner. @param refuse makes the error for a scale that depends on more than the row */
function ofOwner(scale: Expr, owner: Expr, refuse: (reason: string) => Error): Expr {
  const known = rewrite(scale, (node) => (equalExprs(node, owner) ? local('owner', 'i32') : node))
  const other = [...freeNames(known)].find((name) => !['owner', 'h', 'j'].includes(name))
  if (other !== undefined) throw refuse('the scale of a row of the past depends on more than the row')
  return known
}

/** Rewrites an element that query heads share in terms of the shared head: `h idiv q` becomes `h`. */
function sharedBy(element: Expr): { readonly element: Expr; readonly shared: Expr | undefined } {
  if (!freeNames(element).has('h')) return { element, shared: undefined }
  let by: Expr | undefined
  const own = '(head)'
  const replaced = rewrite(element, (node) => {
    const [h, q] = node.kind === 'call' && node.fn === 'idiv' ? node.args : []
    if (q === undefined || !equalExprs(h, index('h')) || freeNames(q).size > 0 || (by !== undefined && !equalExprs(by, q)))
      return node
    by = q
    return index(own)
  })
  if (by === undefined || freeNames(replaced).has('h')) return { element, shared: i32(1) }
  return { element: substitute(replaced, new Map([[own, index('h')]])), shared: by }
}

/** Matches `j === place ? replaced : kept`, with a place that depends on the sequence alone. */
function placed(expr: Expr): { readonly place: Expr; readonly replaced: Expr; readonly kept: Expr } | undefined {
  const [condition, replaced, kept] = expr.kind === 'call' && expr.fn === 'select' ? expr.args : []
  if (condition?.kind !== 'call' || condition.fn !== 'eq' || replaced === undefined || kept === undefined) return undefined
  const [left, right] = condition.args
  for (const [at, place] of [
    [left, right],
    [right, left],
  ])
    if (equalExprs(at, index('j')) && place !== undefined && [...freeNames(place)].every((name) => name === 'b'))
      return { place, replaced, kept }
  return undefined
}

/** The step that the group itself appends to the cache. Checks that the stored value is the one that attention reads for the owner. */
function stepOf(
  group: AttentionGroup,
  members: readonly Member[],
  row: ExprOf<'load'>,
  owner: Expr,
  { place, replaced }: { readonly place: Expr; readonly replaced: Expr },
  product: NodeOf<'matmul'>,
): DecodeStep {
  const { graph, name, around, slots } = group
  const append = members.find(({ kernel }) => kernel.tensors.some(({ updates }) => updates !== undefined))
  const output = append?.kernel.tensors.find(({ updates }) => updates !== undefined)
  const cached = output === undefined ? undefined : append?.node.outputs[output.name]
  const first = members[0]?.node.name ?? ''
  if (append === undefined || output === undefined || cached === undefined)
    throw illegal(name, first, product.name, 'expected an op that updates the cache in place with the step')
  const { shape } = valueAt(graph.values, cached)
  const piece = elementOf(group, around.before(cached), cached, { shape, axes: row.indices })
  const own = placed(slots.inKernelNames(piece, piece.value, undefined))
  const isSame =
    own !== undefined &&
    equalExprs(own.place, place) &&
    // Rows that other sequences own would need the positions of those sequences.
    (freeNames(place).size === 0 || equalExprs(owner, index('b'))) &&
    !freeNames(own.replaced).has('j') &&
    equalExprs(substitute(own.replaced, new Map([['b', owner]])), replaced) &&
    equalExprs(own.kept, row)
  if (!isSame)
    throw illegal(name, append.node.name, product.name, 'the step that is stored differs from the one that is attended to')
  const stored = rowAt(slots.update(cached, shape, output.layout, row.tensor), row.indices)
  if (stored === undefined) throw new Error('internal: a row of a cache that is not a row of the cache with its step')
  return { append, cached, row: stored, place, element: own.replaced }
}
