/**
 * Roles of the axes of a matmul, from its subscripts alone, independent of axis names and of the order of axes in the factors and the result. The
 * result's last axis determines which factor has the columns, so the operands of a matmul may be in either order.
 */
import type { NodeOf } from '../../ir/graph.js'

/** The axes of a matmul under the names of their roles: `m`, `n`, `k` and, for other axes of the result, `b0`, `b1`, ... */
export interface Roles {
  /** The factor whose own axes are rows of the result; those of the other are its columns. */
  readonly left: 'a' | 'b'
  /** Batch axes in the order of the result. A factor need not have all of them. */
  readonly batch: readonly string[]
  /** The axes of the factors and of the result. */
  readonly axes: { readonly left: readonly string[]; readonly right: readonly string[]; readonly out: readonly string[] }
}

/** The roles of the axes, or the reason why they are not those of a matmul of matrices, worded to follow the matmul's name. */
export function rolesOf({ subscripts: { a, b, out } }: Pick<NodeOf<'matmul'>, 'subscripts'>): Roles | string {
  const lists = [a, b, out]
  for (const axes of lists) {
    const twice = axes.find((axis, i) => axes.indexOf(axis) !== i)
    if (twice !== undefined) return `names axis ${twice} twice in "${axes.join(' ')}"`
  }
  const alone = lists.flat().find((axis) => lists.filter((axes) => axes.includes(axis)).length === 1)
  if (alone !== undefined) return `has axis ${alone} in one tensor only: sum or repeat it by an op of its own`
  const n = out.at(-1)
  if (n === undefined || (a.includes(n) && b.includes(n)))
    return `is stored as "${out.join(' ')}", whose last axis must belong to one factor alone: a main loop stores runs of columns`
  const left = a.includes(n) ? 'b' : 'a'
  const [rows, columns] = left === 'a' ? [a, b] : [b, a]
  const [k, second] = rows.filter((axis) => !out.includes(axis))
  if (k === undefined) return 'sums over no axis'
  if (second !== undefined) {
    const isOne = [rows, columns].every((axes) => axes.indexOf(second) === axes.indexOf(k) + 1)
    const first = isOne ? '' : 'store both factors with the two adjacent, in one order, and '
    return `sums over ${k} and ${second}: ${first}view both factors with one axis for the two`
  }
  const m = out.filter((axis) => rows.includes(axis) && !columns.includes(axis)).at(-1)
  if (m === undefined) return `has no axis of rows: "${rows.join(' ')}" shares all of its axes with "${columns.join(' ')}"`
  const batch = out.filter((axis) => axis !== m && axis !== n)
  const named = new Map([...batch.map((axis, i) => [axis, `b${i}`] as const), [m, 'm'], [n, 'n'], [k, 'k']])
  const [ofLeft, ofRight, ofOut] = [rows, columns, out].map((list) => list.map((axis) => named.get(axis) ?? axis))
  return { left, batch: batch.map((_, i) => `b${i}`), axes: { left: ofLeft ?? [], right: ofRight ?? [], out: ofOut ?? [] } }
}
