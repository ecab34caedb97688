/**
 * Shared memory of rows that their threads compute once and keep whole. One whose length a launch knows has as much as its team keeps in
 * registers, or, where its passes read it again, as much as the longest. Asked where variants are chosen.
 */
import { longestWhole } from '../ir/constructs/row.js'
import type { Variant } from './mapped.js'
import type { SharedRow } from './normal.js'
import { type Step, statementsOf } from './passes.js'

const sharedRows = (steps: readonly Step[]): SharedRow[] =>
  steps.flatMap((step) => (step.kind === 'pass' ? statementsOf(step.pass, 'sharedRow') : []))

const isFixed = ({ loop }: SharedRow): boolean => loop.length.kind === 'const'

/** Rows of a length that a launch knows. */
export const keptRows = (steps: readonly Step[]): SharedRow[] => sharedRows(steps).filter((row) => !isFixed(row))

/** Whether a kernel keeps rows whole before it replaces them: its text has one copy, since two would have memory for each row. */
export const keepsWhole = (steps: readonly Step[]): boolean =>
  sharedRows(steps).length > 0 && steps.some(({ kind }) => kind === 'meet')

/** Whether a block of a variant has memory for the rows that are kept whole. @param vec elements of a chunk */
export function hasMemory({ team, chunks }: Pick<Variant, 'team' | 'chunks'>, steps: readonly Step[], vec: number): boolean {
  const lanes = team.kind === 'thread' ? 1 : team.lanes
  const rows = team.kind === 'block' ? 1 : team.rowsPerBlock
  const elements = sharedRows(steps).map(
    (row) => rows * (isFixed(row) || chunks === undefined ? row.length : lanes * chunks * vec),
  )
  return elements.reduce((sum, each) => sum + each, 0) <= longestWhole
}
