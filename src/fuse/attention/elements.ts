/**
 * Derives an element of the ops around attention as an expression: addresses, scores and stored values follow from their bodies. Operands, scores and
 * the output of an attention group are each derived separately.
 */
import { HeddleError } from '../../errors.js'
import { i32, index } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { Graph, NodeOf, ValueId } from '../../ir/graph.js'
import type { Kernel, StmtOf } from '../../ir/kernel.js'
import { renameLoops } from '../../ir/loop_names.js'
import { printShape } from '../../ir/shape.js'
import type { RowAccess } from '../../ir/template.js'
import { freeNames, rewrite, substitute } from '../../ir/walk.js'
import { type LayoutsByName, pushValue, valueAt } from '../graph/edit.js'
import { identityMember } from '../product/identity.js'
import { type Derived, deriveKernel } from '../rows/derive.js'
import { innerViews } from '../space/members.js'
import { equalExprs } from '../space/positions.js'
import { illegal, isElementwise, type Member } from '../space/space.js'
import type { Surroundings } from './parts.js'
import type { Roles } from './roles.js'
import { type RoleAxes, seenAxes } from './seen_axes.js'
import type { AttentionSlots, Piece } from './slots.js'
import { Inliner } from './written.js'

/** An attention group while it is derived. `scores` and `context` are its two matmuls; `slots` grow with each derived part. */
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

/**
 * The single statement to which ops reduce, the store of `value`, with reductions inlined.
 * @throws usage `plan.illegal` for ops with more statements
 */
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
  throw illegal(name, one, other, 'attention reads and stores elements that can each be computed alone, and these ops do more')
}

/**
 * The row program of members. If a member reduces rows, these are the rows of the program. If later members run over other rows, such as a cache
 * after normed keys, each of their elements is computed separately, with a loop for the shared reduction.
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

/** A member with each element computed separately. Loops in expressions get names that are unique among members. */
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

/** Statement that stores one element of a kernel, with reductions as loops in its expression. Undefined for a kernel with any other construct. */
function asElement(kernel: Kernel): StmtOf<'storeRow'> | undefined {
  const written = new Inliner()
  for (const stmt of kernel.body) {
    if (stmt.kind === 'let') written.define(stmt.name, written.inline(stmt.value))
    else if (stmt.kind === 'row') written.defineRow(stmt)
    else if (stmt.kind === 'reduce') {
      const { type, monoid, length, index: at } = stmt
      // The index is renamed, since the stored row may use the same name.
      written.define(stmt.name, renameLoops({ kind: 'fold', type, monoid, length, index: at, value: written.inline(stmt.value) }))
    } else if (stmt.kind === 'storeRow' && stmt.when === undefined) {
      if (stmt !== kernel.body.at(-1)) return undefined
      return { ...stmt, value: written.inline(stmt.value) }
    } else return undefined
  }
  return undefined
}

/** `elementOf` of a value whose last view splits axes that no member has: appends an identity that has them. */
function refinedElement(group: AttentionGroup, members: readonly Member[], viewed: ValueId, { shape, axes }: RoleAxes): Piece {
  const values = [...group.graph.values]
  const shown = pushValue(values, valueAt(values, viewed))
  const graph: Graph = { ...group.graph, values }
  const names = shape.map((_, at) => `x${at}`)
  const last = identityMember(graph, members.at(-1)?.node.name ?? '', viewed, shown, names)
  return elementOf({ ...group, graph }, [...members, last], shown, { shape, axes })
}

/**
 * The element that a group of ops stores, as an expression of the template's indices. A view may regroup heads before a matmul reads the value.
 * @param read roles of the axes of `value`, as the matmul reads it, and the value that a view makes of it
 * @throws usage `plan.illegal` for ops that are not elementwise over those axes
 */
export function elementOf(
  group: AttentionGroup,
  members: readonly Member[],
  value: ValueId,
  read: RoleAxes & { readonly viewed?: ValueId },
): Piece {
  const { derived, stmt } = storeOf(group, members, value)
  const { rows } = derived.kernel
  const first = members[0]?.node.name ?? ''
  const last = members.at(-1)?.node.name ?? ''
  const stored = derived.outputs.find((binding) => binding.value === value)?.shape ?? []
  const axes = seenAxes(group.slots, stored, read, isOfHeads)
  // A reduction over a row of several heads would be repeated for each of its elements.
  const isPlain = members.every(({ kernel }) => isElementwise(kernel))
  if (axes === undefined && isPlain && read.viewed !== undefined && read.viewed !== value)
    return refinedElement(group, members, read.viewed, read)
  if (axes === undefined) {
    const [wanted, got] = [read.shape, stored].map(printShape)
    throw illegal(group.name, first, last, `expected elements along the axes of the matmul, "${wanted}", got "${got}"`)
  }
  // Each index gets the role of the axis it is stored along: an output may be stored in another order than the rows run.
  const roles = new Map<string, Expr>()
  placesOf(stmt).forEach((expr, at) => {
    const role = axes[at]
    if (expr.kind === 'index' && role !== undefined) roles.set(expr.name, role)
  })
  if ([...rows.map((row) => row.index), stmt.index].some((row) => !roles.has(row)))
    throw illegal(group.name, first, last, 'it is stored at computed positions')
  return { derived, value: substitute(renameLoops(stmt.value), roles) }
}

/** Indices at which a statement stores an element. */
export const placesOf = (stmt: StmtOf<'storeRow'>): readonly Expr[] => [...stmt.rows, index(stmt.index)]

/** The row of element `c`: indices with element 0 in place of `c`. Undefined where elements are not consecutive. */
export function rowAt(tensor: string, indices: readonly Expr[]): RowAccess | undefined {
  const last = indices.at(-1)
  const outer = indices.slice(0, -1)
  if (last === undefined || !equalExprs(last, index('c')) || outer.some((expr) => freeNames(expr).has('c'))) return undefined
  return { tensor, indices: [...outer, i32(0)] }
}

/** True for roles of heads alone: the order of rows of sequences and positions is that of the matmul. */
const isOfHeads = (roles: readonly Expr[]): boolean => roles.every((role) => [...freeNames(role)].every((name) => name === 'h'))
