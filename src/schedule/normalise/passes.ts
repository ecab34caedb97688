/**
 * Second pass of the schedule: orders a normalised kernel into steps. A step runs once per row, or it is a pass: one loop over the elements of a
 * row into which as many statements as possible are fused. A statement waits for the passes whose results it reads, so a kernel has as many passes
 * over a length as its longest chain of reductions, plus one. A scan is a row like any other: its readers need no pass of their own.
 *
 *     top = max of v[c]                           pass over c: top = max of v[c]               (v kept in registers)
 *     total = sum of exp(v[c] - top)              pass over c: total = sum of e[c]             (e kept, v found in registers)
 *     store y[m, c] = exp(v[c] - top) / total     pass over c: store y[m, c] = e[c] / total
 */
import type { Expr } from '../../ir/expr.js'
import { visit } from '../../ir/walk.js'
import { inPassOrder, isPassStmt, passStatementOf, scheduledOf } from '../constructs/index.js'
import {
  type Loop,
  type NormalKernel,
  type NormalStmt,
  type PassStmt,
  type RowDef,
  type RowStmt,
  rowExprs,
  startsOf,
} from './normal.js'
import { hashOf } from './rewrite.js'

export interface Pass {
  readonly loop: Loop
  /** Rows that this pass needs and no earlier pass has kept, in dependency order. */
  readonly rows: readonly PassRow[]
  /** Statements executed for each element, in order of emission. */
  readonly statements: readonly PassStmt[]
}

/** The expressions a pass computes for each element, apart from its rows. */
export const passValues = ({ statements }: Pick<Pass, 'statements'>): Expr[] =>
  statements.flatMap((s) => passStatementOf(s).values(s))

/** The statements of one kind in a pass. */
export const statementsOf = <K extends PassStmt['kind']>({ statements }: Pick<Pass, 'statements'>, kind: K) =>
  statements.filter((s): s is Extract<PassStmt, { kind: K }> => s.kind === kind)

/** A row value within a pass; `keep` when a later pass uses it too and finds it in registers. */
export type PassRow = RowDef & { readonly keep: boolean }

/** Maps the expressions of a row's elements; a loaded row is returned unchanged. */
export function mapRow(row: PassRow, f: (e: Expr) => Expr): PassRow {
  if (row.kind === 'loaded') return row
  return row.kind === 'scanned' ? { ...row, values: row.values.map(f) } : { ...row, value: f(row.value) }
}

export type Step = RowStmt | { readonly kind: 'pass'; readonly pass: Pass }

/** Steps of a kernel. With `keep`, a row is computed in the first pass that uses it; without, in every one. */
export function planSteps(kernel: NormalKernel, keep: boolean): Step[] {
  const groups = groupByLevel(kernel)
  const passes = groups.flatMap((group) => [...group.passes.values()])
  const kept = placeRows(kernel, passes, keep)
  return groups.flatMap((group): Step[] => [
    ...group.scalars,
    ...[...group.passes.values()].map((pass): Step => {
      const rows = pass.rows.map((row) => ({ ...row, keep: kept.has(row.name) }))
      return { kind: 'pass', pass: { loop: pass.loop, rows, statements: inPassOrder(pass.statements) } }
    }),
  ])
}

interface DraftPass {
  readonly loop: Loop
  readonly rows: RowDef[]
  readonly statements: PassStmt[]
}

interface DraftGroup {
  readonly scalars: RowStmt[]
  /** By the key of the loop's length. */
  readonly passes: Map<string, DraftPass>
}

/** Groups statements by level: the number of passes that must be finished before they can run. */
function groupByLevel(kernel: NormalKernel): DraftGroup[] {
  const levels = new Map<string, number>()
  const levelOf = (e: Expr): number => {
    let level = 0
    visit(e, (node) => {
      if (node.kind === 'local') level = Math.max(level, levels.get(node.name) ?? 0)
      if (node.kind !== 'element') return
      const shared = kernel.shared.has(node.row)
      const ofRow = (): number => levelOfRow(rowNamed(kernel, node.row))
      level = Math.max(level, shared ? (levels.get(node.row) ?? 0) : ofRow())
    })
    return level
  }
  const levelOfRow = (row: RowDef): number => Math.max(0, ...[...startsOf(row), ...rowExprs(row)].map(levelOf))
  const drafts = new Map<number, DraftGroup>()
  const at = (level: number): DraftGroup => {
    const draft: DraftGroup = drafts.get(level) ?? { scalars: [], passes: new Map() }
    drafts.set(level, draft)
    return draft
  }
  const passAt = (level: number, loop: Loop): DraftPass => {
    const { passes } = at(level)
    const pass: DraftPass = passes.get(hashOf(loop.length)) ?? { loop, rows: [], statements: [] }
    passes.set(hashOf(loop.length), pass)
    return pass
  }
  const knownAt = (s: NormalStmt): number => {
    const scheduled = scheduledOf(s)
    return Math.max(0, ...[...scheduled.places(s), ...scheduled.values(s)].map(levelOf))
  }
  const place = (s: NormalStmt, level: number): void => {
    if (isPassStmt(s)) passAt(level, s.loop).statements.push(s)
    else at(level).scalars.push(s)
    for (const { name } of scheduledOf(s).defines(s)) levels.set(name, isPassStmt(s) ? level + 1 : level)
  }
  for (const s of kernel.statements) if (!replaces(s, kernel)) place(s, knownAt(s))
  // A store that replaces memory waits until every read of that memory is done.
  const last = kernel.statements.filter((s) => replaces(s, kernel))
  const after = Math.max(-1, ...drafts.keys()) + (kernel.waits === 'passes' ? 1 : 0)
  const level = Math.max(after, ...last.map(knownAt))
  if (kernel.waits !== 'no') at(level).scalars.push({ kind: 'meet' })
  for (const s of last) place(s, level)
  return [...drafts.entries()].sort(([a], [b]) => a - b).map(([, group]) => group)
}

/** True if a statement stores into the memory of an input that it replaces. */
const replaces = (s: NormalStmt, { replaced }: NormalKernel): boolean =>
  (s.kind === 'loopStore' || s.kind === 'store') && replaced.has(s.tensor)

/** Puts each row into the pass that computes it. Returns the rows that later passes read again. */
function placeRows(kernel: NormalKernel, passes: readonly DraftPass[], keep: boolean): Set<string> {
  const kept = new Set<string>()
  const done = new Set<string>()
  for (const pass of passes) {
    const here = pass.rows
    const need = (name: string): void => {
      if (here.some((row) => row.name === name)) return
      if (keep && done.has(name)) {
        kept.add(name)
        return
      }
      const row = rowNamed(kernel, name)
      if (row.kind !== 'loaded') for (const value of rowExprs(row)) needAll(value)
      here.push(row)
    }
    const needAll = (e: Expr): void =>
      visit(e, (node) => {
        if (node.kind === 'element' && !kernel.shared.has(node.row)) need(node.row)
      })
    for (const value of passValues(pass)) needAll(value)
    for (const row of here) done.add(row.name)
  }
  return kept
}

function rowNamed(kernel: NormalKernel, name: string): RowDef {
  const row = kernel.rows.get(name)
  if (row === undefined) throw new Error(`internal: no row ${name}`)
  return row
}
