/**
 * Fuses independent ops of a group horizontally into one kernel: parts that run over equal axes, except for one axis of rows, such as the rotations
 * of queries and of the fewer heads of keys. The kernel runs over the concatenated extents of that axis, and each part stores in its own range. Parts
 * are first derived separately; here, their kernels get common names and conditions.
 */
import { call, dim, index as indexOf } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { Kernel, RowAxis, Stmt, StmtOf } from '../../ir/kernel.js'
import { type Shape, sameExtent } from '../../ir/shape.js'
import { oversizeKernel } from '../../ir/size.js'
import { verifyKernel } from '../../ir/verify.js'
import { mapStmt, rewrite, substitute } from '../../ir/walk.js'
import { illegal, type Member } from '../space/space.js'
import type { Derived } from './derive.js'
import { Joining } from './joining.js'
import { isStored, type Stored, twinBody } from './twins.js'

/** A part of a group, and its kernel. */
export interface Part {
  readonly members: readonly Member[]
  readonly derived: Derived
}

/**
 * Index of the row axis in which parts of a group differ; undefined unless that is the only difference.
 * @param iterations extents that each part runs over, rows first
 */
export function joinedAxis(iterations: readonly Shape[]): number | undefined {
  const [first = [], ...others] = iterations
  if (others.some((other) => other.length !== first.length)) return undefined
  const isSame = (extent: Shape[number], at: number): boolean =>
    others.every((other) => other[at] !== undefined && sameExtent(extent, other[at]))
  const [at, second] = first.flatMap((extent, place) => (isSame(extent, place) ? [] : [place]))
  return second === undefined && at !== first.length - 1 ? at : undefined
}

/**
 * Merges several parts into one kernel.
 * @param at the axis of rows that is each part's own
 * @throws usage `plan.illegal` for parts that neither apply the same computation to different tensors nor store each element separately, or that
 * update a value in place
 */
export function beside(group: string, parts: readonly Part[], at: number): Derived {
  for (const part of parts) expectNoUpdate(group, part, parts)
  const joining = new Joining()
  const kernels = parts.map(({ derived }) => joining.add(derived))
  const [first] = kernels
  const spans = kernels.flatMap(({ rows }) => rows[at] ?? [])
  const [own, ...others] = spans
  if (first === undefined || own === undefined) throw new Error(`internal: group ${group} has no axis to join`)
  const axis: RowAxis = { index: own.index, dim: own.dim, also: others.map((span) => span.dim) }
  const rows = first.rows.with(at, axis)
  const places = spans.map((_, part) => placeIn(spans, part, axis.index))
  const bodies = kernels.map(({ rows: given, body }, part) => {
    const here = new Map(given.map(({ index }, i) => [index, indexOf(rows[i]?.index ?? index)]))
    here.set(given[at]?.index ?? '', places[part]?.place ?? indexOf(axis.index))
    return body.map((stmt) => mapStmt(stmt, (expr) => substitute(expr, here)))
  })
  const [before, holds] = [places.map(({ isBefore }) => isBefore), places.map((each) => each.holds)]
  const body =
    twinBody(bodies, before, holds, joining.fresh) ?? bodies.flatMap((each, part) => storesOf(group, each, part, parts, holds))
  const kernel: Kernel = { ...first, ...joining.parameters(), rows, body }
  const large = oversizeKernel(kernel)
  if (large !== undefined) throw refuse(group, parts[0], parts, `a value is too large: ${large}`)
  verifyKernel(kernel, `fuse ${group}`)
  return { kernel, ...joining.bindings() }
}

const refuse = (group: string, part: Part | undefined, parts: readonly Part[], reason: string) => {
  const other = parts.find((each) => each !== part)?.members[0]?.node.name ?? ''
  return illegal(group, part?.members[0]?.node.name ?? '', other, `they run over different axes, and ${reason}`)
}

function expectNoUpdate(group: string, part: Part, parts: readonly Part[]): void {
  const updated = part.derived.kernel.tensors.find(({ updates }) => updates !== undefined)
  if (updated !== undefined) throw refuse(group, part, parts, `${updated.updates} is replaced in place`)
}

/** A part's index along the joined axis, after the parts before it. */
interface Place {
  readonly place: Expr
  /** Condition that an index is before the end of this part; undefined for the last. */
  readonly isBefore: Expr | undefined
  /** Condition that an index is in the part's own range. */
  readonly holds: Expr
}

function placeIn(spans: readonly RowAxis[], part: number, name: string): Place {
  const ends: Expr[] = []
  for (const span of spans) {
    const before = ends.at(-1)
    ends.push(before === undefined ? dim(span.dim) : call('add', before, dim(span.dim)))
  }
  const [at, start, end] = [indexOf(name), ends[part - 1], ends[part]]
  const isBefore = end === undefined || part === spans.length - 1 ? undefined : call('lt', at, end)
  const isAfter = start === undefined ? undefined : call('ge', at, start)
  const holds = isBefore !== undefined && isAfter !== undefined ? call('and', isAfter, isBefore) : (isBefore ?? isAfter)
  if (holds === undefined) throw new Error('internal: one part is beside none')
  return { place: start === undefined ? at : call('sub', at, start), isBefore, holds }
}

/** The body of a part as stores alone, in the part's range: scalars and rows are inlined into their readers. */
function storesOf(
  group: string,
  given: readonly Stmt[],
  at: number,
  parts: readonly Part[],
  holds: readonly Expr[],
): readonly Stored[] {
  const scalars = new Map<string, Expr>()
  const rows = new Map<string, StmtOf<'row'>>()
  const writtenOut = (expr: Expr): Expr =>
    rewrite(expr, (node) => {
      if (node.kind === 'local') return scalars.get(node.name) ?? node
      const row = node.kind === 'element' ? rows.get(node.row) : undefined
      return row === undefined || node.kind !== 'element' ? node : substitute(row.value, new Map([[row.index, node.index]]))
    })
  const own = holds[at]
  return given.flatMap((stmt): readonly Stored[] => {
    const made = mapStmt(stmt, writtenOut)
    if (made.kind === 'let') scalars.set(made.name, made.value)
    else if (made.kind === 'row') rows.set(made.name, made)
    else if (!isStored(made) || own === undefined)
      throw refuse(group, parts[at], parts, 'only ops that do the same, or compute each element by itself, run side by side')
    else return [{ ...made, when: made.when === undefined ? own : call('and', own, made.when) }]
    return []
  })
}
