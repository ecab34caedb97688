/**
 * Roles of the axes of two matmuls that may be attention. Roles follow from the subscripts alone, independent of the names and the order of axes. The
 * axis of the scores that the second matmul sums over is that of the keys. The last axis that only
 * the query has is its position. Of the other axes of the scores, the first is the batch, and the rest, flattened, are the heads.
 */
import { call, i32, index } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { Graph, NodeOf, ValueId } from '../../ir/graph.js'
import type { Extent } from '../../ir/shape.js'
import { valueAt } from '../graph/edit.js'

type Matmul = NodeOf<'matmul'>

/** Two matmuls, the second of which reads the first. */
export interface MatmulPair {
  readonly scores: Matmul
  readonly context: Matmul
  /** The operand of `context` that is computed from `scores`. */
  readonly weightsSide: 'a' | 'b'
}

/** An operand of a matmul with the role of each axis, an expression of `b`, `h`, `i`, `j` and `c`. */
export interface RoleOperand {
  readonly value: ValueId
  readonly axes: readonly Expr[]
}

export interface Roles {
  readonly query: RoleOperand
  readonly key: RoleOperand
  readonly value: RoleOperand
  /** The weights, as the second matmul reads them. */
  readonly probabilities: RoleOperand
  /** Roles of the axes of the scores and of the result. */
  readonly scores: readonly Expr[]
  readonly result: readonly Expr[]
  /** Extents by role. Heads are all axes that are neither sequence nor position, taken together. */
  readonly batch: readonly Extent[]
  readonly heads: readonly Extent[]
  /** Positions of queries; undefined where each sequence and head has one query. */
  readonly queries: Extent | undefined
  readonly keys: Extent
  readonly headDim: Extent
  readonly valueDim: Extent
}

/** Reason why two matmuls are not attention, naming the axes. */
export class NoRoles extends Error {}

/** Axes of two matmuls by role, as the first matmul names them, except for `c`. */
interface AxisRoles {
  /** Operands of the first matmul, and the other operand of the second. */
  readonly query: 'a' | 'b'
  readonly key: 'a' | 'b'
  readonly values: 'a' | 'b'
  /** Axes of the weights: names in the second matmul to names in the first. */
  readonly scored: ReadonlyMap<string, string>
  /** Axes of keys, of elements of queries and keys, of elements of values, and of positions of queries. */
  readonly j: string
  readonly k: string
  readonly c: string
  readonly i: string | undefined
  /** The other axes of the scores: a sequence and heads. */
  readonly rest: readonly string[]
}

/** @throws NoRoles */
function axesOf({ scores, context, weightsSide }: MatmulPair): AxisRoles {
  const values = weightsSide === 'a' ? 'b' : 'a'
  const places = context.subscripts[weightsSide]
  const { out } = scores.subscripts
  if (places.length !== out.length)
    throw new NoRoles(`scores have axes "${out.join(' ')}", and the second matmul reads them as "${places.join(' ')}"`)
  const summed = places.filter((axis) => !context.subscripts.out.includes(axis))
  const [keyAxis, ...moreKeys] = summed
  if (keyAxis === undefined || moreKeys.length > 0 || !context.subscripts[values].includes(keyAxis))
    throw new NoRoles(
      summed.length === 1
        ? `the second matmul sums over axis ${summed[0]} of the scores, which the values do not have`
        : `attention needs a second matmul that sums over one axis of the scores, the keys; it sums over ${summed.length}`,
    )
  const scored = new Map(places.map((axis, at) => [axis, out[at] ?? axis]))
  const j = scored.get(keyAxis) ?? keyAxis
  const key = scores.subscripts.b.includes(j) ? 'b' : 'a'
  const query = key === 'a' ? 'b' : 'a'
  if (scores.subscripts[query].includes(j)) throw new NoRoles(`axis ${j} of the keys is an axis of the query too`)
  const inner = scores.subscripts[query].filter((axis) => !out.includes(axis))
  const [k, ...moreInner] = inner
  if (k === undefined || moreInner.length > 0 || !scores.subscripts[key].includes(k))
    throw new NoRoles(`attention needs a first matmul that sums over one axis of queries and keys; it sums over ${inner.length}`)
  const own = context.subscripts[values].filter((axis) => !places.includes(axis))
  const [c, ...moreOwn] = own
  if (c === undefined || moreOwn.length > 0 || !context.subscripts.out.includes(c))
    throw new NoRoles(`values have ${own.length} axes of their own, attention takes one`)
  const outer = out.filter((axis) => axis !== j)
  const i = outer.filter((axis) => !scores.subscripts[key].includes(axis)).at(-1)
  const valueAxes = new Set(context.subscripts[values])
  const positional = places.find((axis) => scored.get(axis) === i && i !== undefined && valueAxes.has(axis))
  if (positional !== undefined) throw new NoRoles(`values differ by query: they have its axis ${positional}`)
  return { query, key, values, scored, j, k, c, i, rest: outer.filter((axis) => axis !== i) }
}

/** Extents of the axes of a matmul's operands. */
function operandExtents({ values }: Graph, { a, b, subscripts }: Matmul): (axis: string) => Extent {
  const extents = new Map<string, Extent>()
  for (const [axes, id] of [
    [subscripts.a, a],
    [subscripts.b, b],
  ] as const) {
    const { shape } = valueAt(values, id)
    for (const [at, axis] of axes.entries()) {
      const extent = shape[at]
      if (extent !== undefined) extents.set(axis, extent)
    }
  }
  return (axis) => {
    const extent = extents.get(axis)
    if (extent === undefined) throw new Error(`internal: axis ${axis} has no extent`)
    return extent
  }
}

/**
 * @param extentOf the kernel's dimension for an extent
 * @throws NoRoles
 */
export function rolesOf(graph: Graph, pair: MatmulPair, extentOf: (extent: Extent) => Expr): Roles {
  const { scores, context, weightsSide } = pair
  const { query, key, values, scored, j, k, c, i, rest } = axesOf(pair)
  const extent = operandExtents(graph, scores)
  const [batch, ...heads] = rest
  const headExtents = heads.map(extent)
  const roles = new Map<string, Expr>([
    [j, index('j')],
    [k, index('c')],
    ...(i === undefined ? [] : [[i, index('i')] as const]),
    ...(batch === undefined ? [] : [[batch, index('b')] as const]),
    ...heads.map((axis, at) => [axis, digit(at, headExtents.map(extentOf), index('h'))] as const),
  ])
  const roleOf = (axis: string): Expr => roles.get(axis) ?? index(axis)
  const second = (axis: string): Expr => (axis === c ? index('c') : roleOf(scored.get(axis) ?? axis))
  const { shape } = valueAt(graph.values, context[values])
  const [keys, headDim, valueDim] = [extent(j), extent(k), shape[context.subscripts[values].indexOf(c)]]
  if (valueDim === undefined) throw new Error('internal: values without an extent')
  return {
    query: { value: scores[query], axes: scores.subscripts[query].map(roleOf) },
    key: { value: scores[key], axes: scores.subscripts[key].map(roleOf) },
    value: { value: context[values], axes: context.subscripts[values].map(second) },
    probabilities: { value: context[weightsSide], axes: context.subscripts[weightsSide].map(second) },
    scores: scores.subscripts.out.map(roleOf),
    result: context.subscripts.out.map(second),
    batch: batch === undefined ? [] : [extent(batch)],
    heads: headExtents,
    queries: i === undefined ? undefined : extent(i),
    keys,
    headDim,
    valueDim,
  }
}

/** Index along one of the axes that a number counts through, the last of them fastest. */
export function digit(at: number, extents: readonly Expr[], whole: Expr): Expr {
  const inside = extents.slice(at + 1)
  const above =
    inside.length === 0
      ? whole
      : call(
          'idiv',
          whole,
          inside.reduce((left, right) => call('mul', left, right)),
        )
  const own = extents[at]
  return at === 0 || own === undefined ? above : call('mod', above, own)
}

/** Product of extents as an expression; 1 for none. */
export const productOf = (extents: readonly Expr[]): Expr =>
  extents.length === 0 ? i32(1) : extents.reduce((left, right) => call('mul', left, right))
