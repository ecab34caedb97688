/**
 * One element of what the ops around attention compute, as an expression: how places, scores and stored values are taken from
 * their bodies. Operands, scores and the output of an attention group are each derived apart from the others.
 */
import { HeddleError } from '../../errors.js'
import { call, dim, i32, index } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { Graph, NodeOf, ValueId } from '../../ir/graph.js'
import type { Kernel, StmtOf } from '../../ir/kernel.js'
import { renameLoops } from '../../ir/loop_names.js'
import type { Shape } from '../../ir/shape.js'
import type { RowAccess } from '../../ir/template.js'
import { freeNames, rewrite, substitute } from '../../ir/walk.js'
import { type LayoutsByName, runsBetween } from '../graph/edit.js'
import { type Derived, deriveKernel } from '../rows/derive.js'
import { innerViews } from '../space/members.js'
import { equalExprs } from '../space/positions.js'
import { illegal, isElementwise, type Member } from '../space/space.js'
import type { Surroundings } from './parts.js'
import type { Roles } from './roles.js'
import type { AttentionSlots, Piece } from './slots.js'
import { Written } from './written.js'

/** An attention group while it is derived: `scores` and `context` are its two products, the slots grow as they are read off. */
export interface AttentionGroup {
  readonly graph: Graph
  readonly name: string
  readonly scores: NodeOf<'matmul'>
  readonly context: NodeOf<'matmul'>
  readonly layouts: LayoutsByName
  readonly roles: Roles
  readonly around: Surroundings
  readonly slots: AttentionSlots
}

/** The only statement of ops, which stores `value`, with reductions written into it. @throws usage `plan.illegal` when there is more to them */
export function storeOf(
  group: AttentionGroup,
  members: readonly Member[],
  value: ValueId,
): { readonly derived: Derived; readonly stmt: StmtOf<'storeRow'> } {
  const { name, context } = group
  const derived = derivedOf(group, members, value)
  const stmt = asElement(derived.kernel)
  if (stmt !== undefined) return { derived, stmt }
  const [first, ...rest] = members.map(({ node }) => node.name)
  const [one, other] = [rest.length === 0 ? context.name : (first ?? ''), rest.at(-1) ?? first ?? '']
  throw illegal(
    name,
    one,
    other,
    'what attention reads and stores are elements that can each be computed alone, and this is more',
  )
}

/**
 * The row program of members. One that reduces rows makes these the program's; where what follows runs along others, as a cache does behind
 * keys that are normed, its elements are each computed by themselves, with a loop for what they have in common.
 */
function derivedOf({ graph, name, layouts }: AttentionGroup, members: readonly Member[], value: ValueId): Derived {
  const derive = (of: readonly Member[]) => deriveKernel(graph, name, of, innerViews(graph, members), new Set([value]), layouts)
  try {
    return derive(members)
  } catch (error) {
    const alone = members.flatMap((member) => alonePart(member) ?? [])
    if (!(error instanceof HeddleError) || alone.length < members.length || members.every(({ kernel }) => isElementwise(kernel)))
      throw error
    return derive(alone)
  }
}

/** A member whose elements are each computed alone. Loops inside of expressions get names that no other member has. */
function alonePart(member: Member): Member | undefined {
  const { kernel, node } = member
  if (isElementwise(kernel)) return member
  const stmt = asElement(kernel)
  if (stmt === undefined) return undefined
  const value = rewrite(stmt.value, (expr) => {
    if (expr.kind !== 'fold') return expr
    const own = `${expr.index} of ${node.name}`
    return { ...expr, index: own, value: substitute(expr.value, new Map([[expr.index, index(own)]])) }
  })
  return { node, kernel: { ...kernel, body: [{ ...stmt, value }] } }
}

/** A kernel as one stored element: reductions become loops inside of it. Undefined where another construct is in the way. */
function asElement(kernel: Kernel): StmtOf<'storeRow'> | undefined {
  const written = new Written()
  for (const stmt of kernel.body) {
    if (stmt.kind === 'let') written.scalar(stmt.name, written.out(stmt.value))
    else if (stmt.kind === 'row') written.row(stmt)
    else if (stmt.kind === 'reduce') {
      const { type, monoid, length, index: at } = stmt
      // Its index gets a name of its own: the stored row's may be the same.
      written.scalar(stmt.name, renameLoops({ kind: 'fold', type, monoid, length, index: at, value: written.out(stmt.value) }))
    } else if (stmt.kind === 'storeRow' && stmt.when === undefined) {
      if (stmt !== kernel.body.at(-1)) return undefined
      return { ...stmt, value: written.out(stmt.value) }
    } else return undefined
  }
  return undefined
}

/**
 * The one element a group of ops stores, as an expression of the template's indices: `axes` says what each axis of `value` is.
 * @throws usage `plan.illegal` when the ops are not elementwise over those axes
 */
export function elementOf(group: AttentionGroup, members: readonly Member[], value: ValueId, axes: readonly Expr[]): Piece {
  const { derived, stmt } = storeOf(group, members, value)
  const { rows } = derived.kernel
  const first = members[0]?.node.name ?? ''
  const last = members.at(-1)?.node.name ?? ''
  if (rows.length !== axes.length - 1)
    throw illegal(group.name, first, last, `its elements are seen along ${rows.length + 1} axes, the product has ${axes.length}`)
  // An output stored in another order than the rows run gives each index its role by where it is stored.
  const roles = new Map<string, Expr>()
  placesOf(stmt).forEach((expr, at) => {
    const role = axes[at]
    if (expr.kind === 'index' && role !== undefined) roles.set(expr.name, role)
  })
  if ([...rows.map((row) => row.index), stmt.index].some((row) => !roles.has(row)))
    throw illegal(group.name, first, last, 'it is stored at computed positions')
  return { derived, value: substitute(renameLoops(stmt.value), roles) }
}

/** Where a statement stores an element. */
export const placesOf = (stmt: StmtOf<'storeRow'>): readonly Expr[] => [...stmt.rows, index(stmt.index)]

/** The row of which an element `c` is part: indices with element 0 in its place; undefined where elements do not follow each other. */
export function rowAt(tensor: string, indices: readonly Expr[]): RowAccess | undefined {
  const last = indices.at(-1)
  const outer = indices.slice(0, -1)
  if (last === undefined || !equalExprs(last, index('c')) || outer.some((expr) => freeNames(expr).has('c'))) return undefined
  return { tensor, indices: [...outer, i32(0)] }
}

/**
 * What the axes of a value are to ops behind a view, which may see some of them side by side as one, such as the rows `b*h*s` of a softmax.
 * @param axes what each axis of the value itself is
 * @returns undefined where the view takes axes apart in another way
 */
export function seenAxes(
  { slots }: AttentionGroup,
  seen: Shape,
  shape: Shape,
  axes: readonly Expr[],
): readonly Expr[] | undefined {
  let from = 0
  return runsBetween(seen, shape)?.map((run) => {
    const [own, extents] = [axes.slice(from, from + run), shape.slice(from, from + run)]
    from += run
    return own.reduce((outer, axis, at) => call('add', call('mul', outer, dim(slots.dim(extents[at]))), axis))
  })
}
