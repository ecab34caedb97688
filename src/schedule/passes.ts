/**
 * Second pass of the schedule: orders a normalised kernel into steps. A step is a scalar, a threshold among them, or a pass: one walk over the
 * elements of a row that feeds as many reductions and stores as it can. A construct waits for the reductions it uses, so a
 * kernel has as many passes over a length as its longest chain of reductions, plus one. A ranking or a shared row is waited for like a reduction. A scan
 * is a row like any other: what uses it needs no pass of its own.
 */
import type { Expr } from '../ir/expr.js'
import type { StmtOf } from '../ir/kernel.js'
import { stmtExprs, visit } from '../ir/walk.js'
import type { Histogram, Loop, LoopStore, NormalKernel, Ranking, Reduction, RowDef, SharedRow, Threshold } from './normal.js'
import { keyOf } from './rewrite.js'

export interface Pass {
  readonly loop: Loop
  /** Rows this pass needs and no earlier pass has kept, in dependency order. */
  readonly rows: readonly PassRow[]
  readonly reductions: readonly Reduction[]
  readonly histograms: readonly Histogram[]
  readonly rankings: readonly Ranking[]
  readonly sharedRows: readonly SharedRow[]
  readonly stores: readonly LoopStore[]
}

/** The expressions a pass computes for each element, apart from its rows. */
export const passValues = ({
  reductions,
  histograms,
  rankings,
  sharedRows,
  stores,
}: Pick<Pass, 'reductions' | 'histograms' | 'rankings' | 'sharedRows' | 'stores'>): Expr[] =>
  [...reductions, ...histograms, ...rankings, ...sharedRows, ...stores].map((s) => s.value)

/** A row value within a pass; `keep` when a later pass uses it too and finds it in registers. */
export type PassRow = RowDef & { readonly keep: boolean }

export type Step = StmtOf<'let'> | StmtOf<'store'> | Threshold | { readonly kind: 'pass'; readonly pass: Pass }

/** The steps of a kernel. With `keep`, a row is computed in the first pass that uses it; without, in every one. */
export function planSteps(kernel: NormalKernel, keep: boolean): Step[] {
  const groups = groupByLevel(kernel)
  const passes = groups.flatMap((group) => [...group.passes.values()])
  const { needed, kept } = placeRows(kernel, passes, keep)
  return groups.flatMap((group): Step[] => [
    ...group.scalars,
    ...[...group.passes.values()].map((pass): Step => {
      const rows = (needed.get(pass) ?? []).map((row) => ({ ...row, keep: kept.has(row.name) }))
      return { kind: 'pass', pass: { ...pass, rows } }
    }),
  ])
}

interface DraftPass {
  readonly loop: Loop
  readonly reductions: Reduction[]
  readonly histograms: Histogram[]
  readonly rankings: Ranking[]
  readonly sharedRows: SharedRow[]
  readonly stores: LoopStore[]
}

interface DraftGroup {
  readonly scalars: (StmtOf<'let'> | StmtOf<'store'> | Threshold)[]
  /** By the key of their loop's length. */
  readonly passes: Map<string, DraftPass>
}

/** Groups statements by how many reductions must be finished before they can run. */
function groupByLevel(kernel: NormalKernel): DraftGroup[] {
  const levels = new Map<string, number>()
  const levelOf = (e: Expr): number => {
    let level = 0
    visit(e, (node) => {
      if (node.kind === 'local') level = Math.max(level, levels.get(node.name) ?? 0)
      if (node.kind !== 'element') return
      const shared = kernel.shared.has(node.row)
      level = Math.max(level, shared ? (levels.get(node.row) ?? 0) : levelOf(definitionOf(rowNamed(kernel, node.row))))
    })
    return level
  }
  const drafts = new Map<number, DraftGroup>()
  const at = (level: number): DraftGroup => {
    const draft: DraftGroup = drafts.get(level) ?? { scalars: [], passes: new Map() }
    drafts.set(level, draft)
    return draft
  }
  const passAt = (level: number, loop: Loop): DraftPass => {
    const { passes } = at(level)
    const pass: DraftPass = passes.get(keyOf(loop.length)) ?? {
      loop,
      reductions: [],
      histograms: [],
      rankings: [],
      sharedRows: [],
      stores: [],
    }
    passes.set(keyOf(loop.length), pass)
    return pass
  }
  for (const s of kernel.statements) {
    const level = Math.max(...expressionsOf(s).map(levelOf))
    if (s.kind === 'reduce') {
      passAt(level, s.loop).reductions.push(s)
      levels.set(s.name, level + 1)
    } else if (s.kind === 'histogram') {
      passAt(level, s.loop).histograms.push(s)
    } else if (s.kind === 'topK') {
      passAt(level, s.loop).rankings.push(s)
      for (const row of [s.name, s.indices]) levels.set(row, level + 1)
    } else if (s.kind === 'sharedRow') {
      passAt(level, s.loop).sharedRows.push(s)
      levels.set(s.name, level + 1)
    } else if (s.kind === 'loopStore') {
      passAt(level, s.loop).stores.push(s)
    } else {
      at(level).scalars.push(s)
      if (s.kind === 'let' || s.kind === 'threshold') levels.set(s.name, level)
    }
  }
  return [...drafts.entries()].sort(([a], [b]) => a - b).map(([, group]) => group)
}

const definitionOf = (row: RowDef): Expr => (row.kind === 'loaded' ? row.load : row.value)

function expressionsOf(s: NormalKernel['statements'][number]): Expr[] {
  switch (s.kind) {
    case 'let':
      return [s.value]
    case 'store':
      return [...stmtExprs(s)]
    case 'reduce':
    case 'topK':
    case 'sharedRow':
      return [s.value, s.loop.length]
    case 'threshold':
      return [s.target, s.loop.length, s.key, s.value]
    case 'histogram':
      return [s.value, s.bins, s.loop.length, ...s.indices]
    case 'loopStore':
      return [s.value, s.loop.length, ...s.indices, ...(s.when === undefined ? [] : [s.when])]
  }
}

/** Finds the pass that computes each row, and the rows that later passes ask for again. */
function placeRows(
  kernel: NormalKernel,
  passes: readonly DraftPass[],
  keep: boolean,
): { needed: Map<DraftPass, RowDef[]>; kept: Set<string> } {
  const needed = new Map<DraftPass, RowDef[]>()
  const kept = new Set<string>()
  const done = new Set<string>()
  for (const pass of passes) {
    const here: RowDef[] = []
    const need = (name: string): void => {
      if (here.some((row) => row.name === name)) return
      if (keep && done.has(name)) {
        kept.add(name)
        return
      }
      const row = rowNamed(kernel, name)
      if (row.kind !== 'loaded') needAll(row.value)
      here.push(row)
    }
    const needAll = (e: Expr): void =>
      visit(e, (node) => {
        if (node.kind === 'element' && !kernel.shared.has(node.row)) need(node.row)
      })
    for (const value of passValues(pass)) needAll(value)
    for (const row of here) done.add(row.name)
    needed.set(pass, here)
  }
  return { needed, kept }
}

function rowNamed(kernel: NormalKernel, name: string): RowDef {
  const row = kernel.rows.get(name)
  if (row === undefined) throw new Error(`internal: no row ${name}`)
  return row
}
