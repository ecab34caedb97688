/**
 * Loads that several walks of a column program make of the same rows: a softmax or a norm of columns reads its tensor two or three times. A thread can
 * hold the rows of its columns on chip from the first walk on, if all walks go over the same rows.
 */
import { index as indexVar } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { isHostExpr } from '../normalise/host_expr.js'
import { sameExpr, substituteIndex } from '../normalise/rewrite.js'
import type { ChunkLoad, ColumnProgram, ColumnStores, DividedPass } from './divided_program.js'

/** Loads of the same rows. */
export interface HeldLoad {
  /** The load of the first walk, over rows of the index `row`. */
  readonly first: ChunkLoad
  readonly row: string
  /** Those of all walks, in order of execution. */
  readonly loads: readonly ChunkLoad[]
  /** Number of rows. */
  readonly rows: Expr
}

const anyRow = indexVar('(row)')

/** Rows that later walks load again, of tensors that the program does not store. */
export function heldLoads({ sequence }: Pick<ColumnProgram, 'sequence'>): readonly HeldLoad[] {
  const walks = sequence.filter((step): step is DividedPass | ColumnStores => step.kind === 'pass' || step.kind === 'stores')
  const stored = new Set(walks.flatMap((walk) => (walk.kind === 'stores' ? walk.stores.map(({ tensor }) => tensor) : [])))
  const [first] = walks.flatMap(({ loops }) => loops)
  const isWhole = walks.every(
    ({ loops, ...walk }) =>
      loops.length === 1 &&
      loops.every(({ length }) => first !== undefined && sameExpr(length, first.length)) &&
      !('when' in walk && walk.when !== undefined),
  )
  if (first === undefined || !isWhole || !isHostExpr(first.length)) return []
  const found: {
    readonly first: ChunkLoad
    readonly row: string
    readonly places: readonly Expr[]
    readonly loads: ChunkLoad[]
  }[] = []
  for (const { loops, loads } of walks)
    for (const load of loads) {
      const { tensor, indices } = load.load
      const row = loops[0]?.index ?? ''
      const places = indices.map((at) => substituteIndex(at, row, anyRow))
      const isSame = (at: Expr, i: number): boolean => sameExpr(at, places[i] ?? anyRow)
      const known = found.find((each) => each.first.load.tensor === tensor && each.places.every(isSame))
      if (known !== undefined) known.loads.push(load)
      else if (!stored.has(tensor)) found.push({ first: load, row, places, loads: [load] })
    }
  const rows = first.length
  return found.flatMap(({ places: _, ...held }) => (held.loads.length > 1 ? [{ ...held, rows }] : []))
}
