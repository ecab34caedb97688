/**
 * Lowers a pass to a loop over the chunks of its row: loads, values of the chunk, one loop over the elements per stage (stages.ts), and what leaves
 * the chunk. Rows that are kept in registers are loaded before the loop.
 */
import { startsOf } from '../schedule/normalise/normal.js'
import { type Pass, type PassRow, statementsOf } from '../schedule/normalise/passes.js'
import { ofChunks } from './chunk_values.js'
import { type LoweredStmt, lowerStmt, publishedBy } from './constructs.js'
import { mayFault } from './faults.js'
import type { Access, Accumulator, Compute, Copy, LaneLoop, Loop } from './ir.js'
import { loadedGroups, storedGroups } from './members.js'
import { type Loaded, spansOf } from './spans.js'
import { isScanned, meets, type ScannedRow, type Stages, stagesOf } from './stages.js'
import { type State, withStart } from './state.js'

/** A pass being lowered. */
interface Draft {
  readonly pass: Pass
  readonly stages: Stages
  readonly stmts: readonly LoweredStmt[]
  /** The accumulator of each scan. Fields of one scan share theirs. */
  readonly scans: ReadonlyMap<ScannedRow, Accumulator>
  /** True if an element that does not exist is not computed, since that may fault. */
  readonly guarded: boolean
  readonly state: State
}

export function lowerPass(given: Pass, state: State): readonly Loop[] {
  const { frame, shared } = state
  const alone = isAlone(given)
  const { pass, values } = alone ? { pass: given, values: () => [] } : ofChunks(given, frame, shared)
  const stages = stagesOf(pass)
  const guarded = mayFault(pass, shared) || stages.scans.length > 0
  const groups = storedGroups(statementsOf(pass, 'loopStore'))
  const stmts = pass.statements.map((stmt) => lowerStmt(stmt, { state, guarded, index: pass.loop.index, groups }))
  const draft: Draft = { pass, stages, stmts, scans: scansOf(stages.scans, state), guarded, state }
  const together = meets(pass)
  const loop: Omit<LaneLoop, 'step' | 'body'> = {
    kind: 'for',
    owner: 'lane',
    ...pass.loop,
    walk: frame.walk,
    together,
    unrolled: false,
  }
  const lowered: LaneLoop = alone
    ? { ...loop, step: 'element', body: [...computed(draft, 0), ...stmts.flatMap(({ element = [] }) => element)] }
    : { ...loop, step: 'chunk', body: [...chunkOf(draft, values(together || frame.mayBeEmpty)), ...partsOf(draft, 'closeChunk')] }
  const nodes = [
    ...pass.rows.flatMap((row) => declared(row, draft)),
    ...partsOf(draft, 'declare'),
    lowered,
    ...partsOf(draft, 'finish'),
  ]
  for (const name of pass.statements.flatMap(publishedBy)) shared.add(name)
  return nodes
}

const partsOf = ({ stmts }: Draft, part: keyof LoweredStmt): readonly Loop[] => stmts.flatMap((stmt) => stmt[part] ?? [])

/**
 * True if a pass only writes shared rows. Its lanes take one element each: an element is a serial reduction, and a lane with a chunk of them would
 * compute one after the other while its neighbours wait.
 */
const isAlone = ({ statements, rows }: Pass): boolean =>
  statements.length > 0 &&
  statements.every(({ kind }) => kind === 'sharedRow') &&
  rows.every((row) => row.kind === 'computed' && !row.keep)

/** One accumulator per scan: rows of the same user monoid are fields of one. */
function scansOf(rows: readonly ScannedRow[], state: State): ReadonlyMap<ScannedRow, Accumulator> {
  const groups = new Map<unknown, ScannedRow[]>()
  for (const row of rows) {
    const key = typeof row.monoid === 'string' ? row : row.monoid
    groups.set(key, [...(groups.get(key) ?? []), row])
  }
  return new Map(
    [...groups.values()].flatMap((group) => {
      const accumulator = accumulatorOf(group, state)
      return group.map((row): [ScannedRow, Accumulator] => [row, accumulator])
    }),
  )
}

function accumulatorOf(group: readonly ScannedRow[], state: State): Accumulator {
  const [row] = group
  if (row === undefined) throw new Error('internal: a scan has no rows')
  return {
    kind: 'accumulator',
    name: `scan ${state.names++}`,
    of: row.name,
    monoid: row.monoid,
    type: row.values[0]?.type ?? 'f32',
    scan: true,
    rows: group.map(({ name, field }) => ({ row: name, field })),
    starts: startsOf(row),
    from: row.values,
  }
}

/** Scans of which no earlier row shares the accumulator. */
const firsts = ({ scans }: Draft): [ScannedRow, Accumulator][] => [...scans].filter(([row, { of }]) => row.name === of)

/** Nodes before the loop for a row: its load, its registers, its accumulator. */
function declared(row: PassRow, draft: Draft): readonly Loop[] {
  const { state } = draft
  if (row.kind === 'loaded') return state.frame.walk === 'kept' ? [copyOf(row, draft, 'row')] : []
  const scan = isScanned(row) ? firsts(draft).flatMap(([each, accumulator]) => (each === row ? [accumulator] : [])) : []
  return row.keep ? [...scan, bufferOf(row, 'row')] : scan
}

const bufferOf = (row: PassRow & { readonly kind: 'computed' | 'scanned' }, shape: 'chunk' | 'row'): Loop => ({
  kind: 'buffer',
  name: row.name,
  row: row.name,
  type: row.type,
  shape,
  zero: false,
  from: row.kind === 'scanned' ? row.values : [row.value],
})

const accessOf = ({ load: { tensor, indices }, run, loop: { index } }: Loaded, { state }: Draft): Access =>
  withStart({ tensor, indices, run, index }, state)

const copyOf = (row: Loaded, draft: Draft, shape: 'chunk' | 'row', access = accessOf(row, draft)): Copy => ({
  kind: 'copy',
  row: row.name,
  load: row.load,
  access,
  ...(row.guard === undefined ? {} : { guard: row.guard }),
  shape,
  length: row.loop.length,
  keep: row.keep,
})

/** A load of the elements of groups, of which each row has a member. */
function copyOfGroup(rows: ReturnType<typeof loadedGroups>[number], draft: Draft): Copy {
  const [row] = rows
  const { factor, first } = row.interleaved
  const members = rows.map(({ name, load: { indices }, interleaved: { member } }) => ({ row: name, member, indices }))
  const access = { tensor: row.load.tensor, indices: first, run: row.run, index: row.loop.index, factor }
  return { ...copyOf(row, draft, 'chunk', withStart(access, draft.state)), load: { ...row.load, indices: first }, members }
}

/** Body of the loop over chunks. */
function chunkOf(draft: Draft, values: readonly Loop[]): readonly Loop[] {
  const { pass, stages, state } = draft
  const loaded = state.frame.walk === 'kept' ? [] : pass.rows.filter((row) => row.kind === 'loaded')
  const spans = spansOf(loaded)
  const alone = loaded.filter(({ shift, interleaved }) => shift === undefined && interleaved === undefined)
  const loads = [
    ...alone.map((row) => copyOf(row, draft, 'chunk')),
    ...spans.map(({ row, span }) => ({ ...copyOf(row, draft, 'chunk'), span })),
    ...loadedGroups(loaded).map((rows) => copyOfGroup(rows, draft)),
  ]
  const outliving = pass.rows.flatMap((row) =>
    row.kind === 'computed' && !row.keep && stages.outlives(row) ? [bufferOf(row, 'chunk')] : [],
  )
  const before = Array.from({ length: stages.last }, (_, stage) => {
    const finished = firsts(draft).filter(([row]) => stages.known(row) === stage + 1)
    const added = finished.map(([row, into]): Loop => ({ kind: 'accumulate', into, values: row.values }))
    return [
      ...elementsOf(draft, stage, added, []),
      ...finished.map(([, accumulator]): Loop => ({ kind: 'combine', accumulator, across: 'lane', into: [] })),
    ]
  })
  return [
    ...loads,
    ...values,
    ...partsOf(draft, 'openChunk'),
    ...outliving,
    ...before.flat(),
    ...elementsOf(draft, stages.last, partsOf(draft, 'element'), partsOf(draft, 'anyElement')),
    ...partsOf(draft, 'leaveChunk'),
  ]
}

/** Loop over the elements of a chunk in one stage: its rows, then what is collected of those that exist, then values that leave the chunk. */
function elementsOf(draft: Draft, stage: number, collect: readonly Loop[], leave: readonly Loop[]): readonly Loop[] {
  const compute = computed(draft, stage)
  const existing = (body: readonly Loop[]): readonly Loop[] => (body.length === 0 ? [] : [{ kind: 'exists', whole: false, body }])
  const body = draft.guarded ? existing([...compute, ...collect, ...leave]) : [...compute, ...existing(collect), ...leave]
  return body.length === 0 ? [] : [{ kind: 'for', owner: 'vector', index: draft.pass.loop.index, body }]
}

/** The rows that become known in a stage, in dependency order. */
const computed = ({ pass, stages, scans }: Draft, stage: number): readonly Loop[] =>
  pass.rows.flatMap((row): readonly Compute[] => {
    if (row.kind === 'loaded' || stages.known(row) !== stage) return []
    const node = { kind: 'compute', row: row.name, type: row.type } as const
    if (row.kind === 'computed')
      return [{ ...node, value: row.value, shape: row.keep ? 'row' : stages.outlives(row) ? 'chunk' : 'element' }]
    const scan = scans.get(row)
    return row.keep && scan !== undefined ? [{ ...node, value: { scan, field: row.field }, shape: 'row' }] : []
  })
