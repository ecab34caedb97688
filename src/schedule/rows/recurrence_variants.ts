/**
 * Variants of a row program with a recurrence along its rows. Steps are sequential in any team, so wide teams gain nothing. One warp per row loads
 * rows in wide chunks while there are warps to spare; one thread per row processes 32 times as many rows at once.
 */
import type { Variant } from '../mapped.js'
import type { PassStmt, RowDef } from '../normalise/normal.js'
import type { Step } from '../normalise/passes.js'

const warp = 32
/** Warps that a large GPU (132 multiprocessors) runs at once, half of its capacity. More warps wait for each other's steps. */
const mostWarps = 4224

/** True if a row is the result of a recurrence. */
export const isCarried = (row: RowDef): boolean =>
  row.kind === 'scanned' && typeof row.monoid !== 'string' && 'next' in row.monoid

const passesOf = (steps: readonly Step[]) => steps.flatMap((step) => (step.kind === 'pass' ? [step.pass] : []))

/** True if a recurrence runs along the rows. */
export const carries = (steps: readonly Step[]): boolean => passesOf(steps).some(({ rows }) => rows.some(isCarried))

/** True if every team computes the same bits; the number of rows may then select any team. */
const isOrderFree = (s: PassStmt): boolean =>
  s.kind === 'loopStore' || s.kind === 'histogram' || (s.kind === 'reduce' && (s.monoid !== 'sum' || s.type === 'i32'))

/**
 * @param values per lane of each row that registers can hold
 * @param areNeighbours rows are adjacent in memory: one thread per row gives coalesced reads, lanes of one row would not
 */
export function foldVariants(
  kept: readonly Step[],
  vec: number,
  boundedLength: boolean,
  values: number,
  areNeighbours: boolean,
): Variant[] {
  const passes = passesOf(kept)
  const isFree =
    passes.every(
      ({ rows, statements }) => statements.every(isOrderFree) && rows.every((row) => row.kind !== 'scanned' || isCarried(row)),
    ) && kept.every(({ kind }) => kind !== 'team')
  const keeps = boundedLength && passes.some(({ rows }) => rows.some((row) => row.keep && isCarried(row)))
  const team = { kind: 'warp', lanes: warp, rowsPerBlock: 4 } as const
  const wide: Variant = {
    name: 'warp_wide',
    team,
    chunks: values / vec,
    limit: { length: warp * values, rows: undefined },
    reason: 'what is carried stays in registers for the passes after it',
  }
  const warps: Variant = {
    name: 'warp_reread',
    team,
    chunks: undefined,
    limit: { length: undefined, rows: isFree ? mostWarps : undefined },
    reason: 'steps run in order: lanes take turns, and load and store together',
  }
  const threads: Variant = {
    name: 'thread_reread',
    team: { kind: 'thread', rowsPerBlock: warp },
    chunks: undefined,
    limit: { length: undefined, rows: undefined },
    reason: areNeighbours
      ? 'rows lie side by side: a thread each, which reads what its neighbours read beside it'
      : 'more rows than warps run at once: a thread a row',
  }
  if (areNeighbours && isFree) return [threads]
  return [...(keeps && values >= vec ? [wide] : []), warps, ...(isFree ? [threads] : [])]
}
