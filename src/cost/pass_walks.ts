/** Walks of the steps that elementwise and row programs share: scalars of a row, and passes over its elements. */
import type { Expr } from '../ir/expr.js'
import { loadedGroups, storedGroups } from '../loop/members.js'
import { spansOf } from '../loop/spans.js'
import { passStatementOf, rowStatementOf } from '../schedule/constructs/index.js'
import type { Interleaved } from '../schedule/normalise/normal.js'
import { type Pass, type Step, statementsOf } from '../schedule/normalise/passes.js'
import type { ChunkForm } from './chunk_forms.js'
import { combining, scanning } from './combining.js'
import type { Counted, Walk, WalkAccess } from './walk.js'

export type RowStep = Exclude<Step, { readonly kind: 'pass' }>

/** Scalars of a row, which every thread of it computes. @param threads of a row */
export function scalarWalk(step: RowStep, outer: readonly Counted[], order: readonly Counted[], threads: number): Walk {
  const lanes: Counted = { index: '(lane)', count: threads }
  const axes = new Set(outer.map(({ index }) => index))
  const base = {
    axes,
    perChunk: 0,
    vec: 1,
    serial: [],
    reads: [],
    values: rowStatementOf(step).values(step),
    extra: 0,
    isAwaited: false,
  }
  if (step.kind === 'store')
    return { ...base, loops: outer, order, stores: [{ tensor: step.tensor, indices: step.indices, vec: 1 }] }
  return { ...base, loops: [...outer, lanes], order: [lanes, ...order], stores: [] }
}

/** Threads of a pass, and the loops around its elements. */
export interface Around {
  readonly outer: readonly Counted[]
  readonly loop: Counted
  readonly order: readonly Counted[]
  readonly vec: number
  readonly serial: readonly string[]
  readonly perChunk: number
  /** Form of the chunks of rows; packs by default. */
  readonly form?: ChunkForm
}

const groupAccess = (tensor: string, { factor, first }: Interleaved, vec: number): WalkAccess => ({
  tensor,
  indices: first,
  vec,
  factor,
})

/** A pass over the elements of rows. */
export function passWalk({ rows, statements }: Pass, around: Around): Walk {
  const { outer, loop, order, vec, serial, perChunk, form = 'packs' } = around
  const loaded = rows.filter((row) => row.kind === 'loaded')
  // A span is a load of the chunk, and one on each side on which it has elements.
  const spans = spansOf(loaded).flatMap(({ row, span: { before, after } }) =>
    [true, before > 0, after > 0].flatMap((isMade) => (isMade ? [row] : [])),
  )
  const alone = loaded.filter(({ shift, interleaved }) => shift === undefined && interleaved === undefined)
  const reads = [
    ...[...alone, ...spans].map(({ load: { tensor, indices } }): WalkAccess => ({ tensor, indices, vec, form })),
    ...loadedGroups(loaded).map(([{ load, interleaved }]) => groupAccess(load.tensor, interleaved, vec)),
  ]
  const computed = rows.flatMap((row): readonly Expr[] =>
    row.kind === 'computed' ? [row.value] : row.kind === 'scanned' ? row.values : [],
  )
  const stored = statementsOf({ statements }, 'loopStore')
  const stores = [
    ...stored
      .filter(({ interleaved }) => interleaved === undefined)
      .map(
        ({ tensor, indices, run }): WalkAccess =>
          run === undefined ? { tensor, indices, vec: 1 } : { tensor, indices, vec, form },
      ),
    ...storedGroups(stored).map(([{ tensor, interleaved }]) => groupAccess(tensor, interleaved, vec)),
  ]
  const values = statements.flatMap((s) => passStatementOf(s).values(s))
  const conditions = stored.flatMap(({ when }) => (when === undefined ? [] : [when]))
  const extra = [...rows.map(scanning), ...statements.map(combining)].reduce((sum, each) => sum + each, 0)
  return {
    axes: new Set(outer.map(({ index }) => index)),
    loops: [...outer, loop],
    order,
    // A thread with rows of its own walks along them.
    vec: serial.includes(loop.index) ? 1 : vec,
    serial,
    perChunk,
    reads,
    rows: new Map(rows.flatMap((row) => (row.kind === 'computed' ? [[row.name, row.value]] : []))),
    values: [...computed, ...values, ...conditions],
    stores,
    extra,
    isAwaited: statements.some(({ kind }) => kind !== 'loopStore'),
  }
}
