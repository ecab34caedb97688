/** Order of a column program: walks and values per column, each after those that it reads. */
import type { Expr } from '../../ir/expr.js'
import type { StmtOf } from '../../ir/kernel.js'
import { freeNames } from '../../ir/walk.js'
import type { Loop } from '../normalise/normal.js'
import { contains } from '../normalise/rewrite.js'
import type { Simple } from './column_rows.js'
import type { ChunkLoad, DividedPass, DividedStep } from './divided_program.js'
import { isReduction, type Reduced, resultsOf } from './reduction.js'

/** Parts of a column program: its statements, with reductions and loads of rows in chunks. */
export interface ColumnParts {
  readonly body: readonly Simple[]
  readonly reductions: readonly Reduced[]
  readonly loads: readonly ChunkLoad[]
  readonly loop: Loop
  readonly when: Expr | undefined
}

/** Independent reductions share a walk over the rows; values computed from their results follow it. */
export function inLevels({ body, reductions, loads, loop, when }: ColumnParts): DividedStep[] {
  const levels = new Map<string, number>()
  const levelOf = (exprs: readonly Expr[]): number =>
    Math.max(0, ...exprs.flatMap((e) => [...freeNames(e)].map((name) => levels.get(name) ?? 0)))
  const walks = new Map<number, Reduced[]>()
  const once = new Map<number, (StmtOf<'let'> | StmtOf<'store'>)[]>()
  for (const s of body) {
    if (isReduction(s)) {
      const reduction = reductions.find(({ stmt }) => stmt === s)
      if (reduction === undefined) throw new Error(`internal: no reduction of ${resultsOf(s).map(({ name }) => name)}`)
      const level = levelOf(reduction.values)
      walks.set(level, [...(walks.get(level) ?? []), reduction])
      for (const { name } of resultsOf(s)) levels.set(name, level + 1)
    } else {
      const level = levelOf(s.kind === 'let' ? [s.value] : [...s.indices, s.value])
      once.set(level, [...(once.get(level) ?? []), s])
      if (s.kind === 'let') levels.set(s.name, level)
    }
  }
  const last = Math.max(0, ...walks.keys(), ...once.keys())
  return Array.from({ length: last + 1 }, (_, level): DividedStep[] => {
    const together = walks.get(level) ?? []
    const read = readBy(loads, together)
    const pass: DividedPass = {
      kind: 'pass',
      loops: [loop],
      loads: read,
      reductions: together,
      ...(when === undefined ? {} : { when }),
    }
    return [...(once.get(level) ?? []), ...(together.length > 0 ? [pass] : [])]
  }).flat()
}

/** Of loads, those that reductions read. */
const readBy = (loads: readonly ChunkLoad[], reductions: readonly Reduced[]): ChunkLoad[] => {
  const values = reductions.flatMap((each) => each.values)
  return loads.filter(({ name }) =>
    values.some((value) => contains(value, (node) => node.kind === 'element' && node.row === name)),
  )
}
