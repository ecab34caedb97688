/**
 * Shared memory of rows that their threads compute once and keep whole, and of histograms that are read. A row whose length is known at launch has
 * as much memory as its team keeps in registers, or, if its passes read it again, as much as the longest row. Used when variants are chosen.
 */
import { sharedWords } from '../../ir/constructs/shared_memory.js'
import type { Expr } from '../../ir/expr.js'
import type { Variant } from '../mapped.js'
import type { PassStmt } from '../normalise/normal.js'
import type { Step } from '../normalise/passes.js'

/** A row in shared memory: its length, its capacity, and its name in messages. */
interface WholeRow {
  readonly length: Expr
  readonly most: number
  readonly what: string
}

function wholeRow(s: PassStmt): readonly WholeRow[] {
  if (s.kind === 'sharedRow') return [{ length: s.loop.length, most: s.length, what: 'elements of a row that is kept whole' }]
  return s.kind === 'counts' ? [{ length: s.bins, most: s.most, what: 'bins of a histogram that is read' }] : []
}

const wholeRows = (steps: readonly Step[]): WholeRow[] =>
  steps.flatMap((step) => (step.kind === 'pass' ? step.pass.statements.flatMap(wholeRow) : []))

const isFixed = ({ length }: WholeRow): boolean => length.kind === 'const'

/** Rows whose length is known only at launch. */
export const keptRows = (steps: readonly Step[]): WholeRow[] => wholeRows(steps).filter((row) => !isFixed(row))

/** True if a block of a variant has memory for the rows that are kept whole. @param vec elements per chunk */
export function hasMemory({ team, chunks }: Pick<Variant, 'team' | 'chunks'>, steps: readonly Step[], vec: number): boolean {
  const lanes = team.kind === 'thread' ? 1 : team.lanes
  const rows = team.kind === 'block' ? 1 : team.rowsPerBlock
  const elements = wholeRows(steps).map((row) => rows * (isFixed(row) || chunks === undefined ? row.most : lanes * chunks * vec))
  return elements.reduce((sum, each) => sum + each, 0) <= sharedWords
}
