/**
 * Lowers column programs and programs of totals. In a column program, a thread has a chunk of columns and shares its rows with other threads: each walk
 * is a loop owned by slots, whose accumulators are exchanged after it. A program of totals is one loop owned by the grid.
 */
import { index as indexVar } from '../ir/build.js'
import { type Expr, inPlaceOf } from '../ir/expr.js'
import type { StmtOf } from '../ir/kernel.js'
import { rewrite } from '../ir/walk.js'
import type { ColumnLoad, ColumnPass, ColumnProgram, ColumnStep, ColumnStores } from '../schedule/column_program.js'
import type { Loop as Counted } from '../schedule/normal.js'
import { type Reduced, resultsOf } from '../schedule/reduction.js'
import type { TotalProgram } from '../schedule/totals.js'
import type { Access, Accumulator, Announce, Copy, DealtLoop, Loop } from './ir.js'

export const lowerWalks = (program: ColumnProgram | TotalProgram): readonly Loop[] =>
  program.kind === 'columns' ? lowerColumns(program) : lowerTotals(program)

/** A column program being lowered. */
interface Draft {
  readonly column: Counted
  /** An expression with the results for a column as elements of rows. */
  readonly ofColumns: (e: Expr) => Expr
  readonly announced: Announce[]
}

function lowerColumns({ column: { index }, length, sequence }: ColumnProgram): readonly Loop[] {
  const names = new Set(
    sequence.flatMap((step) => {
      if (step.kind === 'let') return [step.name]
      return step.kind === 'pass' ? step.reductions.flatMap(({ stmt }) => resultsOf(stmt).map(({ name }) => name)) : []
    }),
  )
  const ofColumns = (e: Expr): Expr =>
    rewrite(e, (node) =>
      node.kind === 'local' && names.has(node.name)
        ? inPlaceOf(node, { kind: 'element', type: node.type, row: node.name, index: indexVar(index) })
        : node,
    )
  const draft: Draft = { column: { index, length }, ofColumns, announced: [] }
  const body = sequence.flatMap((step) => lowerStep(step, draft))
  const lanes = { kind: 'for', owner: 'lane', index, length, step: 'chunk', walk: 'columns' } as const
  return [{ ...lanes, together: true, unrolled: false, body }]
}

function lowerStep(step: ColumnStep, draft: Draft): readonly Loop[] {
  switch (step.kind) {
    case 'let':
      return lowerLet(step, draft)
    case 'store':
      return lowerStore(step, draft)
    case 'pass':
      return lowerReductions(step, draft)
    case 'stores':
      return lowerStores(step, draft)
  }
}

/** A loop over the elements of a chunk that exist. */
const vector = (index: string, body: readonly Loop[]): Loop => ({
  kind: 'for',
  owner: 'vector',
  index,
  body: [{ kind: 'exists', whole: false, body }],
})

function lowerLet({ name, type, value }: StmtOf<'let'>, { column: { index }, ofColumns }: Draft): readonly Loop[] {
  return [
    { kind: 'buffer', name, row: name, type, shape: 'chunk', zero: true, from: [] },
    vector(index, [{ kind: 'compute', row: name, type, value: ofColumns(value), shape: 'chunk' }]),
  ]
}

const lowerStore = ({ tensor, indices, value }: StmtOf<'store'>, { column: { index }, ofColumns }: Draft): readonly Loop[] => [
  vector(index, [{ kind: 'store', tensor, indices: indices.map(ofColumns), value: ofColumns(value), by: 'first slot' }]),
]

const copyOf = ({ name, load, isWhole }: ColumnLoad, { index, length }: Counted, f: (e: Expr) => Expr): Copy => ({
  kind: 'copy',
  row: name,
  load,
  access: inRows({ tensor: load.tensor, indices: load.indices.map(f), index }, isWhole),
  shape: 'chunk',
  length,
  keep: false,
})

const inRows = (place: Pick<Access, 'tensor' | 'indices' | 'index'>, isPacked: boolean): Access => ({
  ...place,
  run: 1,
  rows: isPacked ? 'packed' : 'apart',
  whole: false,
})

function accumulatorOf({ stmt, values }: Reduced, at: number): Accumulator {
  return {
    kind: 'accumulator',
    name: `total ${at}`,
    of: stmt.kind === 'reduce' ? stmt.name : undefined,
    monoid: stmt.monoid,
    type: values[0]?.type ?? 'f32',
    scan: false,
    rows: [],
    starts: [],
    from: values,
  }
}

function lowerReductions({ loop, loads, reductions, when }: ColumnPass, draft: Draft): readonly Loop[] {
  const { column, ofColumns, announced } = draft
  const known = announced.flatMap(({ accumulators }) => accumulators).length
  const parts = reductions.map((each, i) => ({
    accumulator: { ...accumulatorOf(each, known + i), columns: true as const },
    into: resultsOf(each.stmt),
    values: each.values.map(ofColumns),
  }))
  const accumulators = parts.map(({ accumulator }) => accumulator)
  const through = `exchange ${announced.length}`
  const announce: Announce = { kind: 'announce', name: through, accumulators, before: [...announced] }
  announced.push(announce)
  const walk: DealtLoop = {
    ...ofSlots(loop),
    ...(when === undefined ? {} : { when: ofColumns(when) }),
    body: [
      ...loads.map((load) => copyOf(load, column, ofColumns)),
      vector(
        column.index,
        parts.map(({ accumulator, values }) => ({ kind: 'accumulate', into: accumulator, values })),
      ),
    ],
  }
  return [announce, ...accumulators, walk, { kind: 'exchange', across: 'slot', through, parts }]
}

const ofSlots = (loop: Counted) => ({ kind: 'for', owner: 'slot', loops: [loop], step: 'chunk' }) as const

function lowerStores({ loop, loads, stores }: ColumnStores, { column, ofColumns }: Draft): readonly Loop[] {
  const lowered = stores.map(({ tensor, indices, value, inChunks, isWhole }, i) => {
    const buffer = `chunk ${tensor} ${i}`
    const stored = { tensor, value: ofColumns(value) }
    const places = indices.map(ofColumns)
    if (!inChunks) return { element: { kind: 'store', ...stored, indices: places, by: 'owner' } as const }
    const access = inRows({ tensor, indices: places, index: column.index }, isWhole)
    return {
      open: [
        { kind: 'buffer', name: buffer, of: `${tensor}_values`, type: value.type, shape: 'chunk', zero: true, from: [] },
      ] as const,
      element: { kind: 'fill', buffer, ...stored } as const,
      leave: [{ kind: 'storeChunk', access, buffer, from: [value] }] as const,
    }
  })
  const body: readonly Loop[] = [
    ...loads.map((load) => copyOf(load, column, ofColumns)),
    ...lowered.flatMap(({ open = [] }) => open),
    vector(
      column.index,
      lowered.map(({ element }) => element),
    ),
    ...lowered.flatMap(({ leave = [] }) => leave),
  ]
  return [{ ...ofSlots(loop), body }]
}

function lowerTotals({ loops, before, loads, totals, after }: TotalProgram): readonly Loop[] {
  const inner = loops.at(-1)
  if (inner === undefined) throw new Error('internal: a walk has no loop')
  const parts = totals.map((total, i) => ({
    accumulator: accumulatorOf(total, i),
    into: resultsOf(total.stmt),
    values: total.values,
  }))
  const add = parts.map(({ accumulator, values }): Loop => ({ kind: 'accumulate', into: accumulator, values }))
  const isOfChunks = loads.length > 0
  const walk: DealtLoop = {
    kind: 'for',
    owner: 'grid',
    loops,
    step: isOfChunks ? 'chunk' : 'element',
    body: [
      ...loads.map((load) => copyOf(load, inner, (e) => e)),
      isOfChunks ? vector(inner.index, add) : { kind: 'for', owner: 'vector', index: inner.index, body: add },
      ...parts.map(({ accumulator }): Loop => ({ kind: 'combine', accumulator, across: 'vector', into: [] })),
    ],
  }
  return [
    ...before.map(({ name, type, value }): Loop => ({ kind: 'let', name, type, value })),
    ...parts.map(({ accumulator }) => accumulator),
    walk,
    { kind: 'exchange', across: 'grid', parts },
    ...after.map(
      (s): Loop => (s.kind === 'let' ? { kind: 'let', name: s.name, type: s.type, value: s.value } : { ...s, by: 'first lane' }),
    ),
  ]
}
