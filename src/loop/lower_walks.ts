/**
 * Lowers programs whose iterations threads divide. In a column program, a thread has a chunk of columns and shares its rows with other threads: each
 * pass is a loop owned by slots. A program of totals has one loop, owned by the grid. Accumulators are exchanged after the loop.
 */
import { index as indexVar } from '../ir/build.js'
import { type Expr, inPlaceOf } from '../ir/expr.js'
import type { StmtOf } from '../ir/kernel.js'
import { rewrite } from '../ir/walk.js'
import {
  type ChunkLoad,
  type ColumnStores,
  type DividedPass,
  type DividedProgram,
  type DividedStep,
  hasSections,
  passesOf,
  walkOf,
} from '../schedule/divided/divided_program.js'
import { type HeldLoad, heldLoads } from '../schedule/divided/held_loads.js'
import { resultsOf } from '../schedule/divided/reduction.js'
import { isHostExpr } from '../schedule/normalise/host_expr.js'
import type { Loop as Counted } from '../schedule/normalise/normal.js'
import { contains, sameExpr, usesIndex } from '../schedule/normalise/rewrite.js'
import type { Access, Accumulator, Announce, Copy, DividedLoop, Groups, Held, Loop } from './ir.js'

/** A program being lowered. */
interface Draft {
  readonly owner: DividedLoop['owner']
  /** The loop along which chunks lie. */
  readonly chunk: Counted
  /** An expression with the results for a column as elements of rows. */
  readonly ofColumns: (e: Expr) => Expr
  /** True if blocks of the grid may divide the rows. */
  readonly sections: boolean
  /** Loads of rows that threads hold. */
  readonly held: readonly HeldLoad[]
  /** Names of those that a walk has left so far. */
  readonly left: Set<string>
  readonly announced: Announce[]
  /** Number of accumulators so far. */
  accumulators: number
}

export function lowerWalks(program: DividedProgram): readonly Loop[] {
  const { kind, sequence } = program
  const lowered = (draft: Omit<Draft, 'left' | 'announced' | 'accumulators'>): readonly Loop[] => {
    const given: Draft = { ...draft, left: new Set(), announced: [], accumulators: 0 }
    return sequence.flatMap((step) => lowerStep(step, given))
  }
  if (kind === 'totals') {
    const chunk = walkOf(program).loops.at(-1)
    if (chunk === undefined) throw new Error('internal: a walk has no loop')
    return lowered({ owner: 'grid', chunk, ofColumns: (e) => e, held: [], sections: false })
  }
  const { index } = program.column
  const { length } = program
  const lets = sequence.flatMap((step) => (step.kind === 'let' ? [step.name] : []))
  const results = passesOf(program).flatMap(({ reductions }) => reductions.flatMap(({ stmt }) => resultsOf(stmt)))
  const names = new Set([...lets, ...results.map(({ name }) => name)])
  const ofColumns = (e: Expr): Expr =>
    rewrite(e, (node) =>
      node.kind === 'local' && names.has(node.name)
        ? inPlaceOf(node, { kind: 'element', type: node.type, row: node.name, index: indexVar(index) })
        : node,
    )
  const lanes = { kind: 'for', owner: 'lane', index, length, step: 'chunk', walk: 'columns' } as const
  const held = heldLoads(program)
  const body = lowered({ owner: 'slot', chunk: { index, length }, ofColumns, held, sections: hasSections(program) })
  const exchanges = body.filter((loop) => loop.kind === 'announce')
  return [{ ...lanes, together: true, unrolled: false, body: [...heldRows(held, exchanges), ...body] }]
}

const heldName = (at: number): string => `held ${at}`

/** Shared memory of the rows that threads hold, after that of all exchanges. */
function heldRows(held: readonly HeldLoad[], exchanges: readonly Announce[]): readonly Held[] {
  const made: Held[] = []
  for (const [i, { first, row, rows }] of held.entries())
    made.push({ kind: 'held', name: heldName(i), load: first.load, row, length: rows, before: [...made], exchanges })
  return made
}

function lowerStep(step: DividedStep, draft: Draft): readonly Loop[] {
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

function lowerLet({ name, type, value }: StmtOf<'let'>, { owner, chunk: { index, length }, ofColumns }: Draft): readonly Loop[] {
  if (owner === 'grid') return [{ kind: 'let', name, type, value }]
  const ofGroup = valueOfGroup(ofColumns(value), index, `group of ${name}`)
  if (ofGroup !== undefined) return [{ kind: 'groups', row: name, type, column: index, columns: length, ...ofGroup }]
  return [
    { kind: 'buffer', name, row: name, type, shape: 'chunk', zero: true, from: [] },
    vector(index, [{ kind: 'compute', row: name, type, value: ofColumns(value), shape: 'chunk' }]),
  ]
}

/**
 * The value as that of a group of columns; undefined unless it depends on a column only by its group, and takes a loop: threads would repeat that for
 * each of their columns.
 */
function valueOfGroup(value: Expr, column: string, group: string): Pick<Groups, 'group' | 'value' | 'length'> | undefined {
  if (!contains(value, ({ kind }) => kind === 'fold')) return undefined
  let length: Expr | undefined
  const ofGroup = rewrite(value, (node) => {
    if (node.kind !== 'call' || node.fn !== 'idiv') return node
    const [divided, by] = node.args
    if (divided?.kind !== 'index' || divided.name !== column || by === undefined) return node
    length ??= by
    return sameExpr(by, length) ? indexVar(group) : node
  })
  return length === undefined || !isHostExpr(length) || usesIndex(ofGroup, column) ? undefined : { group, value: ofGroup, length }
}

function lowerStore({ tensor, indices, value }: StmtOf<'store'>, { owner, chunk, ofColumns }: Draft): readonly Loop[] {
  const store = { kind: 'store', tensor, indices: indices.map(ofColumns), value: ofColumns(value) } as const
  if (owner === 'grid') return [{ ...store, by: 'first lane' }]
  return [vector(chunk.index, [{ ...store, by: 'first slot' }])]
}

function copyOf(given: ChunkLoad, { chunk: { index, length }, ofColumns, held, left }: Draft): Copy {
  const { name, load, isWhole } = given
  const at = held.findIndex(({ loads }) => loads.includes(given))
  const rows = heldName(at)
  const is = left.has(rows) ? 'taken' : 'left'
  if (at >= 0) left.add(rows)
  return {
    kind: 'copy',
    row: name,
    load,
    access: inRows({ tensor: load.tensor, indices: load.indices.map(ofColumns), index }, isWhole),
    shape: 'chunk',
    length,
    keep: false,
    ...(at < 0 ? {} : { held: { rows, is } }),
  }
}

const inRows = (place: Pick<Access, 'tensor' | 'indices' | 'index'>, isPacked: boolean): Access => ({
  ...place,
  run: 1,
  rows: isPacked ? 'packed' : 'apart',
  whole: false,
})

function lowerReductions({ loops, loads, reductions, when }: DividedPass, draft: Draft): readonly Loop[] {
  const { owner, chunk, ofColumns, announced, sections } = draft
  const isOfColumns = owner === 'slot'
  const parts = reductions.map(({ stmt, values }) => {
    const accumulator: Accumulator = {
      kind: 'accumulator',
      name: `total ${draft.accumulators++}`,
      of: stmt.kind === 'reduce' ? stmt.name : undefined,
      monoid: stmt.monoid,
      type: values[0]?.type ?? 'f32',
      scan: false,
      ...(isOfColumns ? { columns: true } : {}),
      rows: [],
      starts: [],
      from: values,
    }
    return { accumulator, into: resultsOf(stmt), values: values.map(ofColumns) }
  })
  const accumulators = parts.map(({ accumulator }) => accumulator)
  const through = `exchange ${announced.length}`
  const announce: Announce = { kind: 'announce', name: through, accumulators, before: [...announced] }
  announced.push(announce)
  const add = parts.map(({ accumulator, values }): Loop => ({ kind: 'accumulate', into: accumulator, values }))
  const step = isOfColumns || loads.length > 0 ? 'chunk' : 'element'
  const walk: DividedLoop = {
    kind: 'for',
    owner,
    loops,
    step,
    ...(when === undefined ? {} : { when: ofColumns(when) }),
    body: [
      ...loads.map((load) => copyOf(load, draft)),
      step === 'chunk' ? vector(chunk.index, add) : { kind: 'for', owner: 'vector', index: chunk.index, body: add },
      ...(isOfColumns
        ? []
        : accumulators.map((accumulator): Loop => ({ kind: 'combine', accumulator, across: 'vector', into: [] }))),
    ],
  }
  return [
    ...(isOfColumns ? [announce] : []),
    ...accumulators,
    walk,
    { kind: 'exchange', across: owner, ...(isOfColumns ? { through, sections } : {}), parts },
  ]
}

function lowerStores({ loops, loads, stores }: ColumnStores, draft: Draft): readonly Loop[] {
  const { owner, chunk, ofColumns } = draft
  const lowered = stores.map(({ tensor, indices, value, inChunks, isWhole }, i) => {
    const buffer = `chunk ${tensor} ${i}`
    const stored = { tensor, value: ofColumns(value) }
    const places = indices.map(ofColumns)
    if (!inChunks) return { element: { kind: 'store', ...stored, indices: places, by: 'owner' } as const }
    const access = inRows({ tensor, indices: places, index: chunk.index }, isWhole)
    const registers = { name: buffer, of: `${tensor}_values`, type: value.type, shape: 'chunk', zero: true, from: [] } as const
    return {
      open: [{ kind: 'buffer', ...registers }] as const,
      element: { kind: 'fill', buffer, ...stored } as const,
      leave: [{ kind: 'storeChunk', access, buffer, from: [value] }] as const,
    }
  })
  const body: readonly Loop[] = [
    ...loads.map((load) => copyOf(load, draft)),
    ...lowered.flatMap(({ open = [] }) => open),
    vector(
      chunk.index,
      lowered.map(({ element }) => element),
    ),
    ...lowered.flatMap(({ leave = [] }) => leave),
  ]
  return [{ kind: 'for', owner, loops, step: 'chunk', body }]
}
