/**
 * Evaluation of statements whose values points of a kernel share, such as the statistics of a batch norm: such a statement runs once for each point
 * of the row axes that it depends on. The evaluation of a kernel is then linear in its elements, where its launches are.
 */
import type { Defined, Run, Value } from './constructs/construct.js'
import { constructOf } from './constructs/index.js'
import type { Kernel, Stmt } from './kernel.js'
import { freeNames, stmtExprs, visit } from './walk.js'

/** Largest number of values that statements of one evaluation keep together: 128 MB. More are computed again. */
const mostValues = 1 << 24

/** A statement that runs at a point. */
export type PointRun = (run: Run, point: readonly number[]) => void

/**
 * The statements of a kernel, in order. Those that do not vary along some of its row axes keep their values.
 * @param extents of the row axes
 */
export function pointRuns(kernel: Kernel, extents: readonly number[]): readonly PointRun[] {
  const axes = axesOf(kernel)
  const room = { left: mostValues }
  return kernel.body.map((stmt): PointRun => {
    const construct = constructOf(stmt)
    const own = axes.get(stmt) ?? new Set()
    const varying = kernel.rows.flatMap(({ index }, axis) => (own.has(index) ? [axis] : []))
    const others = extents.some((extent, axis) => extent > 1 && !varying.includes(axis))
    if (!others || construct.traits.makes === 'output' || !loops(stmt)) return (run) => construct.evaluate(stmt, run)
    return keeping(stmt, construct.defines(stmt), varying, extents, room)
  })
}

/** True if a statement runs over elements. Others cost less than a look-up. */
function loops(stmt: Stmt): boolean {
  let has = constructOf(stmt).traits.elements !== 'none'
  for (const expr of stmtExprs(stmt))
    visit(expr, ({ kind }) => {
      has ||= kind === 'fold'
    })
  return has
}

/** Indices of the row axes that each statement depends on, through the statements that it reads. */
export function axesOf({ rows, body }: Kernel): ReadonlyMap<Stmt, ReadonlySet<string>> {
  const along = new Map<string, ReadonlySet<string>>(rows.map(({ index }) => [index, new Set([index])]))
  return new Map(
    body.map((stmt) => {
      const read = stmtExprs(stmt).flatMap((expr) => [...freeNames(expr)])
      const axes = new Set(read.flatMap((name) => [...(along.get(name) ?? [])]))
      for (const { name } of constructOf(stmt).defines(stmt)) along.set(name, axes)
      return [stmt, axes]
    }),
  )
}

/** Values of names at a point: a scalar, or the elements of a row. */
type Kept = Value | readonly Value[]

/** A run that computes a statement at its first point, and sets the same values at others that agree along `varying`. */
function keeping(
  stmt: Stmt,
  defined: readonly Defined[],
  varying: readonly number[],
  extents: readonly number[],
  room: { left: number },
): PointRun {
  const known = new Map<number, readonly Kept[]>()
  const { evaluate } = constructOf(stmt)
  return (run, point) => {
    const key = varying.reduce((at, axis) => at * (extents[axis] ?? 1) + (point[axis] ?? 0), 0)
    const before = known.get(key)
    if (before !== undefined) return setAll(run, defined, before)
    const made = new Map<string, Kept>()
    evaluate(stmt, {
      ...run,
      setLocal: (name, value) => {
        made.set(name, value)
        run.setLocal(name, value)
      },
      setRow: (name, values) => {
        made.set(name, values)
        run.setRow(name, values)
      },
    })
    const values = defined.map(({ name }) => made.get(name) ?? Number.NaN)
    room.left -= values.reduce<number>((all, value) => all + (typeof value === 'object' ? value.length : 1), 0)
    if (room.left >= 0) known.set(key, values)
  }
}

function setAll(run: Run, defined: readonly Defined[], values: readonly Kept[]): void {
  for (const [i, { name }] of defined.entries()) {
    const value = values[i] ?? Number.NaN
    if (typeof value === 'object') run.setRow(name, value)
    else run.setLocal(name, value)
  }
}
