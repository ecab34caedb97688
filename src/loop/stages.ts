/**
 * Stages of a chunk, each a loop over its elements (loop fission at scans). A pass without scans has one stage. The elements of a scan are known
 * once the threads of the row have exchanged the totals of their chunks, so their readers belong to a later stage than the scanned values. Runs
 * when a pass is lowered.
 */
import type { Expr } from '../ir/expr.js'
import { visit } from '../ir/walk.js'
import { passStatementOf } from '../schedule/constructs/index.js'
import { rowExprs } from '../schedule/normalise/normal.js'
import { type Pass, type PassRow, passValues } from '../schedule/normalise/passes.js'

export type ScannedRow = PassRow & { readonly kind: 'scanned' }

export interface Stages {
  readonly scans: readonly ScannedRow[]
  /** The last stage: reductions, histograms and stores belong to it. */
  readonly last: number
  /** The first stage in which the elements of a row of the pass are known. */
  known(row: PassRow): number
  /** True if a later stage than that uses them, so that they must outlive it. */
  outlives(row: PassRow): boolean
}

/** True if the lanes of a row synchronise in every chunk of the pass: to scan, or to rank. */
export const meets = ({ rows, statements }: Pass): boolean =>
  statements.some((s) => passStatementOf(s).meets) || rows.some(isScanned)

export const isScanned = (row: PassRow): row is ScannedRow => row.kind === 'scanned'

/** Orders the rows of a pass into stages. The rows are in dependency order. */
export function stagesOf(pass: Pass): Stages {
  const { rows } = pass
  const known = new Map<string, number>()
  const lastUse = new Map<string, number>()
  const stageOf = (value: Expr): number => {
    let stage = 0
    visit(value, (node) => {
      if (node.kind === 'element') stage = Math.max(stage, known.get(node.row) ?? 0)
    })
    return stage
  }
  const use = (value: Expr, stage: number): void => {
    visit(value, (node) => {
      if (node.kind === 'element') lastUse.set(node.row, Math.max(stage, lastUse.get(node.row) ?? 0))
    })
  }
  for (const row of rows) {
    const values = row.kind === 'loaded' ? [] : rowExprs(row)
    const stage = Math.max(0, ...values.map(stageOf))
    for (const value of values) use(value, stage)
    known.set(row.name, isScanned(row) ? stage + 1 : stage)
  }
  const last = Math.max(0, ...known.values())
  for (const value of passValues(pass)) use(value, last)
  const stageKnown = (row: PassRow): number => known.get(row.name) ?? 0
  return {
    scans: rows.filter(isScanned),
    last,
    known: stageKnown,
    outlives: (row) => (lastUse.get(row.name) ?? 0) > stageKnown(row),
  }
}
