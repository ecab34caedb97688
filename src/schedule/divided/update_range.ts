/**
 * Update range: the interval of an axis in which a kernel replaces elements, such as the places of a cache that a prompt fills. Threads run over
 * that interval and not over the whole axis, of which it may be a small part. Only the device knows its position. Its maximum length follows from
 * its bounds, or from a tensor that is read place by place. A condition that states no interval is evaluated at every element.
 */
import { dim as dimVar, i32 } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import { hashOf } from '../../ir/expr_hash.js'
import type { Kernel, RowAxis, Stmt } from '../../ir/kernel.js'
import { freeNames, mapStmt, operands, rewrite, substitute } from '../../ir/walk.js'
import { isHostExpr } from '../normalise/host_expr.js'
import { substituteDims } from '../normalise/rewrite.js'

/** Integers that are added or subtracted. The sum may exceed 32 bits. */
export type Sum = readonly { readonly sign: '+' | '-'; readonly value: Expr }[]

/** Constraint on the interval. Each is evaluated only if those before it leave a nonempty interval: it may read memory that is valid only then. */
export type Bound = {
  /** Part of the condition that states the bound. */
  readonly part: Expr
} & (
  | /** Without it no element is replaced. */ { readonly kind: 'if' }
  | /** The first place, or the one after the last. */ { readonly kind: 'from' | 'to'; readonly place: Sum }
)

export interface Interval {
  readonly axis: RowAxis
  readonly bounds: readonly Bound[]
  /** Upper bounds of the length, over dimensions and attributes; empty if only the device knows the length. */
  readonly most: readonly Sum[]
}

/**
 * Interval that all stores of a kernel have in common.
 * @param kernel with its updates placed
 * @param axes that may be narrowed, outermost first
 */
export function intervalOf(
  kernel: Kernel,
  axes: readonly RowAxis[],
  dims: Readonly<Record<string, number>>,
): Interval | undefined {
  const fixed = new Map(Object.entries(dims).map(([name, extent]) => [name, i32(extent)]))
  const body = kernel.body.map((stmt) => mapStmt(stmt, (expr) => substituteDims(expr, fixed)))
  const conditions = body.flatMap((s) => ('tensor' in s ? [s.kind === 'histogram' ? undefined : s.when] : []))
  const indices = new Set(axes.map(({ index }) => index))
  for (const axis of axes) {
    const [first, ...others] = conditions.map((each) => (each === undefined ? [] : boundsOf(each, axis.index, indices)))
    if (first === undefined || !first.some(({ kind }) => kind !== 'if')) continue
    if (!others.every((bounds) => hashOfBounds(bounds) === hashOfBounds(first))) continue
    const inside = insideOf({ ...kernel, body }, first)
    return { axis, bounds: first, most: [...lengthsOf(first), ...readBy(inside, axis.index, fixed)] }
  }
  return undefined
}

/** The kernel inside the interval: conditions that the bounds imply are removed. */
export function insideOf(kernel: Kernel, bounds: readonly Bound[]): Kernel {
  const whole = writtenOut(kernel)
  const holding = new Set(bounds.map(({ part }) => hashOf(part)))
  const holds = (expr: Expr): boolean => expr.type === 'bool' && partsOf(whole(expr)).every((part) => holding.has(hashOf(part)))
  const inside = (expr: Expr): Expr =>
    rewrite(expr, (node) => {
      if (holds(node)) return always
      const [first, second] = node.kind === 'call' ? node.args : []
      if (node.kind !== 'call' || first === undefined || second === undefined) return node
      if (node.fn === 'and') return first === always ? second : second === always ? first : node
      return node.fn === 'select' && first === always ? second : node
    })
  const body = kernel.body.flatMap((stmt): Stmt[] => {
    const made = mapStmt(stmt, inside)
    if (made.kind === 'let') return made.value === always ? [] : [made]
    if ((made.kind !== 'store' && made.kind !== 'storeRow') || made.when !== always) return [made]
    const { when: _, ...stored } = made
    return [stored]
  })
  return { ...kernel, body }
}

const always: Expr = { kind: 'const', type: 'bool', value: true }

const hashOfBounds = (bounds: readonly Bound[]): string => bounds.map(({ part }) => hashOf(part)).join('; ')

/** Returns a function that substitutes named scalars by their values. */
function writtenOut({ body }: Kernel): (expr: Expr) => Expr {
  const written = new Map(body.flatMap((stmt) => (stmt.kind === 'let' ? [[stmt.name, stmt.value] as const] : [])))
  const whole = (expr: Expr): Expr => {
    const once = substitute(expr, written)
    return once === expr ? expr : whole(once)
  }
  return whole
}

/**
 * Bounds that a condition states for an axis, in order of evaluation. Ends before the first part that is no bound, or that depends on other names
 * than these indices.
 */
function boundsOf(condition: Expr, axis: string, indices: ReadonlySet<string>): Bound[] {
  const bounds: Bound[] = []
  for (const part of partsOf(condition)) {
    const names = freeNames(part)
    if ([...names].some((name) => !indices.has(name))) break
    const bound = names.has(axis) ? boundOf(part, axis) : ({ kind: 'if', part } as const)
    if (bound === undefined) break
    bounds.push(bound)
  }
  return bounds
}

/** Conjuncts of a condition. */
const partsOf = (condition: Expr): readonly Expr[] =>
  condition.kind === 'call' && condition.fn === 'and' ? condition.args.flatMap(partsOf) : [condition]

/** Comparisons with their sides exchanged. */
const exchanged = { lt: 'gt', le: 'ge', gt: 'lt', ge: 'le' } as const

/** Bound stated by a comparison of integers. */
function boundOf(part: Expr, axis: string): Bound | undefined {
  if (part.kind !== 'call' || !(part.fn in exchanged)) return undefined
  const fn = part.fn as keyof typeof exchanged
  const [left, right] = part.args
  if (left?.type !== 'i32' || right?.type !== 'i32') return undefined
  const found = besidesAxis([...sumOf(left), ...flipped(sumOf(right))], axis)
  if (found === undefined) return undefined
  const { sign, rest } = found
  const compared = sign === '+' ? fn : exchanged[fn]
  const at = sign === '+' ? flipped(rest) : rest
  const place: Sum = compared === 'gt' || compared === 'le' ? [...at, { sign: '+', value: i32(1) }] : at
  return { part, kind: compared === 'ge' || compared === 'gt' ? 'from' : 'to', place }
}

function sumOf(expr: Expr): Sum {
  const [left, right] = expr.kind === 'call' && (expr.fn === 'add' || expr.fn === 'sub') ? expr.args : []
  if (expr.kind !== 'call' || left === undefined || right === undefined) return [{ sign: '+', value: expr }]
  return [...sumOf(left), ...(expr.fn === 'sub' ? flipped(sumOf(right)) : sumOf(right))]
}

const flipped = (sum: Sum): Sum => sum.map(({ sign, value }) => ({ sign: sign === '+' ? '-' : '+', value }))

/** The other terms of a sum that contains an axis exactly once. */
function besidesAxis(sum: Sum, axis: string): { readonly sign: '+' | '-'; readonly rest: Sum } | undefined {
  const [own, ...more] = sum.filter(({ value }) => freeNames(value).has(axis))
  if (own?.value.kind !== 'index' || more.length > 0) return undefined
  return { sign: own.sign, rest: sum.filter((each) => each !== own) }
}

/** Distances from each lower bound to each upper bound, where the terms that only the device knows cancel. */
const lengthsOf = (bounds: readonly Bound[]): Sum[] =>
  bounds.flatMap((to) =>
    bounds.flatMap((from) => {
      if (to.kind !== 'to' || from.kind !== 'from') return []
      const rest: Sum[number][] = []
      for (const each of [...to.place, ...flipped(from.place)]) {
        const opposite = rest.findIndex(({ sign, value }) => sign !== each.sign && hashOf(value) === hashOf(each.value))
        if (opposite >= 0) rest.splice(opposite, 1)
        else rest.push(each)
      }
      return rest.every(({ value }) => isHostExpr(value)) ? [rest] : []
    }),
  )

/**
 * Extents of tensors that every element of the interval reads at a place that moves along with its own: the interval is not longer than these.
 * Under a further condition some elements of a store read nothing, and a row without elements reads nothing at all.
 */
function readBy(inside: Kernel, axis: string, fixed: ReadonlyMap<string, Expr>): Sum[] {
  const whole = writtenOut(inside)
  const stores = inside.body.filter((stmt) => stmt.kind === 'store' || stmt.kind === 'storeRow')
  const single = stores.filter(({ kind }) => kind === 'store')
  const lengths = new Set(stores.flatMap((stmt) => (stmt.kind === 'storeRow' ? [hashOf(stmt.length)] : [])))
  const always = single.length > 0 ? single : lengths.size === 1 ? stores : []
  const stored = always.flatMap((stmt) => (stmt.when === undefined ? [whole(stmt.value)] : []))
  const extents = stored.flatMap(loadsOf).flatMap(({ tensor, indices }) => {
    const dims = inside.tensors.find(({ name }) => name === tensor)?.dims ?? []
    return indices.flatMap((at, i) => (besidesAxis(sumOf(at), axis) === undefined ? [] : (dims[i] ?? [])))
  })
  return [...new Set(extents)].map((name) => [{ sign: '+', value: fixed.get(name) ?? dimVar(name) }])
}

/** Loads that an expression makes whatever the values of its conditions. */
function loadsOf(expr: Expr): ExprOf<'load'>[] {
  if (expr.kind === 'fold') return []
  const isChosen = expr.kind === 'call' && ['select', 'and', 'or'].includes(expr.fn)
  const made = (isChosen ? operands(expr).slice(0, 1) : operands(expr)).flatMap(loadsOf)
  return expr.kind === 'load' ? [expr, ...made] : made
}
