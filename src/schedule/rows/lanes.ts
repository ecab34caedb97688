/** Teams that the steps of a row allow, and the values that their lanes hold. */

import { mostCarried } from '../../ir/constructs/fold_state.js'
import { dtypeInfo } from '../../ir/dtype.js'
import { passStatementOf } from '../constructs/index.js'
import type { Team, Variant } from '../mapped.js'
import type { Step } from '../normalise/passes.js'

export const warp = 32
export const blockThreads = 128

/** Values of each row per lane: few for short rows, so that more rows run at once; many while registers last. */
export const fewValues = 8
export const manyValues = 32
/** The same for a ranked row: each participating warp inserts about as many elements as a warp that has the row to itself. */
const rankedValues = 64
/** 32-bit registers per lane for kept rows; the rest of 128 is for addresses and temporaries. */
const registerBudget = 72

/** Variant of a kernel with a recurrence that has row state: one warp per row, with as many rows per block as shared memory holds. */
export function carriedRows(steps: readonly Step[]): Variant[] {
  const counts = steps.flatMap((step) => (step.kind === 'foldState' ? [step.fields.filter(({ is }) => is === 'row').length] : []))
  if (counts.length === 0) return []
  const all = counts.reduce((sum, count) => sum + count, 0)
  return [
    {
      name: 'warp_reread',
      team: { kind: 'warp', lanes: warp, rowsPerBlock: Math.max(1, Math.floor(mostCarried / all)) },
      chunks: undefined,
      limit: { length: undefined, rows: undefined },
      reason: 'steps run in order: the lanes of a warp share what is carried, and meet without waiting for others',
    },
  ]
}

/**
 * True if a team can compute the rows of a kernel. If lanes synchronise in every chunk, as in a ranking, it needs whole warps; sorting needs a
 * block.
 */
export const isLegal = (team: Team, steps: readonly Step[]): boolean => {
  const [carried] = carriedRows(steps)
  if (carried !== undefined) return sameTeam(team, carried.team)
  return mayDivide(team, steps)
}

const sameTeam = (a: Team, b: Team): boolean =>
  a.kind === 'warp' && b.kind === 'warp' && a.lanes === b.lanes && a.rowsPerBlock <= b.rowsPerBlock

const mayDivide = (team: Team, steps: readonly Step[]): boolean =>
  team.kind === 'block' || (!sorts(steps) && ((team.kind === 'warp' && team.lanes === warp) || !ranks(steps)))

/** True if rows are sorted, each in the memory of a block. */
const sorts = (steps: readonly Step[]): boolean =>
  steps.some((step) => step.kind === 'pass' && step.pass.statements.some(({ kind }) => kind === 'argsort'))

const ranks = (steps: readonly Step[]): boolean =>
  steps.some((step) => step.kind === 'pass' && step.pass.statements.some((s) => passStatementOf(s).meets))

/** True if lanes synchronise in every chunk. */
export const meets = (steps: readonly Step[]): boolean =>
  ranks(steps) || steps.some((step) => step.kind === 'pass' && step.pass.rows.some(({ kind }) => kind === 'scanned'))

/**
 * True if a variant is worth compiling. Each further chunk of a ranking is another copy of it, which only pays if later passes find the row in
 * registers.
 */
export function isProfitable({ chunks = 1 }: Variant, steps: readonly Step[], vec: number): boolean {
  const keeps = steps.some((step) => step.kind === 'pass' && step.pass.rows.some((row) => row.keep))
  return keeps || !ranks(steps) || chunks * vec <= fewValues
}

/** Values of each kept row that a lane can hold within the register budget: 32 (64 if rows are ranked), 16 or 8. */
export function valuesThatFit(steps: readonly Step[]): number {
  let bytes = 0
  for (const step of steps) {
    if (step.kind !== 'pass') continue
    for (const row of step.pass.rows) if (row.keep) bytes += row.kind === 'loaded' ? dtypeInfo[row.dtype].bytes : 4
  }
  let values = ranks(steps) ? rankedValues : manyValues
  while (values > fewValues && (values * bytes) / 4 > registerBudget) values /= 2
  return values
}

/** Most words of shared memory for the totals that lanes exchange: two thirds of what a block has without asking. */
const mostTotals = 8192

/** True if a block has memory for the totals of a lane's chunks, twice for each type of them (native/device/row_block.cuh). */
export function holdsTotals(steps: readonly Step[], lanes: number, chunks: number): boolean {
  const types = new Map<string, number>()
  for (const step of steps) {
    if (step.kind !== 'pass') continue
    for (const s of step.pass.statements) {
      if (s.kind === 'merge') types.set(`${s.monoid.fields.length} fields`, s.monoid.fields.length)
      if (s.kind === 'reduce') types.set(`${s.monoid.startsWith('arg')} ${s.value.type}`, s.monoid.startsWith('arg') ? 2 : 1)
    }
  }
  const words = [...types.values()].reduce((sum, each) => sum + each, 0)
  return 2 * words * lanes * chunks <= mostTotals
}

/**
 * Bytes per element of rows that a lane holds whole: rows for later passes, and rows that are loaded before their pass (src/loop/passes/place_loads.ts). Bytes
 * per element of those that are the same for every row, of which it holds a chunk.
 */
export function heldRows(steps: readonly Step[]): { readonly bytes: number; readonly weights: number } {
  const held = new Map<string, number>()
  const weights = new Map<string, number>()
  for (const step of steps) {
    if (step.kind !== 'pass') continue
    for (const row of step.pass.rows) {
      if (row.kind !== 'loaded' && row.keep) held.set(row.name, 4)
      if (row.kind !== 'loaded') continue
      const isWeight = !row.keep && row.load.indices.every((at) => at.kind === 'index' && at.name === row.loop.index)
      ;(isWeight ? weights : held).set(row.name, dtypeInfo[row.dtype].bytes)
    }
  }
  const sum = (all: ReadonlyMap<string, number>): number => [...all.values()].reduce((total, each) => total + each, 0)
  return { bytes: sum(held), weights: sum(weights) }
}
