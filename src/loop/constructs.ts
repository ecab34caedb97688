/** Lowers the statements of a pass: the nodes before the loop, around the elements of a chunk, at each element, and after the loop. */
import { passStatementOf } from '../schedule/constructs/index.js'
import type { Interleaved, LoopStore, Merged, PassStmt, Reduction, SharedRow } from '../schedule/normalise/normal.js'
import { faults } from './faults.js'
import type { Accumulator, Combine, Loop, Search } from './ir.js'
import type { storedGroups } from './members.js'
import { type State, withStart } from './state.js'

/** Parts of a statement. */
export interface LoweredStmt {
  /** Before the loop: registers and memory that outlive a chunk. */
  readonly declare?: readonly Loop[]
  /** Before the elements of a chunk. */
  readonly openChunk?: readonly Loop[]
  /** For each element that exists. */
  readonly element?: readonly Loop[]
  /** For each element, whether or not it exists. */
  readonly anyElement?: readonly Loop[]
  /** After the elements of a chunk. */
  readonly leaveChunk?: readonly Loop[]
  /** After all values have left a chunk. */
  readonly closeChunk?: readonly Loop[]
  /** After the loop; later steps read the results. */
  readonly finish?: readonly Loop[]
}

interface About {
  readonly state: State
  /** True if elements that do not exist are not computed. */
  readonly guarded: boolean
  /** Index of the loop. */
  readonly index: string
  readonly groups: ReturnType<typeof storedGroups>
}

export function lowerStmt(stmt: PassStmt, about: About): LoweredStmt {
  switch (stmt.kind) {
    case 'reduce':
    case 'merge':
      return lowerReduction(stmt, about)
    case 'loopStore':
      return lowerStore(stmt, about)
    case 'sharedRow':
      return lowerShared(stmt)
    default: {
      const part = (name: Search['part']): readonly Loop[] => [{ kind: 'search', stmt, part: name }]
      return {
        declare: part('declare'),
        openChunk: part('openChunk'),
        element: part('element'),
        leaveChunk: part('leaveChunk'),
        finish: part('finish'),
      }
    }
  }
}

/** Rows in shared memory that can be read after a statement. */
export function publishedBy(stmt: PassStmt): readonly string[] {
  switch (stmt.kind) {
    case 'topK':
      return [stmt.name, stmt.indices]
    case 'argsort':
    case 'counts':
    case 'sharedRow':
      return [stmt.name]
    default:
      return []
  }
}

function lowerReduction(stmt: Reduction | Merged, { state }: About): LoweredStmt {
  const values = stmt.kind === 'reduce' ? [stmt.value] : stmt.values
  const into =
    stmt.kind === 'reduce'
      ? [{ name: stmt.name, type: stmt.type }]
      : stmt.names.map((name, i) => ({ name, type: stmt.monoid.fields[i]?.type ?? 'f32' }))
  const name = `lanes ${state.names++}`
  const accumulator: Accumulator = {
    kind: 'accumulator',
    name,
    of: stmt.kind === 'reduce' ? stmt.name : undefined,
    monoid: stmt.monoid,
    type: values[0]?.type ?? 'f32',
    scan: false,
    rows: [],
    starts: [],
    from: values,
  }
  const combine = (across: Combine['across'], results: Combine['into']): readonly Loop[] => [
    { kind: 'combine', accumulator, across, into: results },
  ]
  return {
    declare: [accumulator],
    element: [{ kind: 'accumulate', into: accumulator, values }],
    closeChunk: combine('vector', []),
    finish: combine('lane', into),
  }
}

/** Values that are stored in chunks are gathered first, the others are stored one by one. */
function lowerStore(given: LoopStore, about: About): LoweredStmt {
  const { kind: _, loop, run, interleaved, ...store } = given
  const { state, guarded, index } = about
  if (interleaved !== undefined) return lowerMember({ ...given, interleaved }, about)
  if (run === undefined) return { anyElement: [{ kind: 'store', ...store, by: 'owner' }] }
  const { tensor, value, when, indices } = store
  // Elements that do not exist are not computed if that might fault.
  const careful = when !== undefined && faults(value)
  const buffer = `chunk ${tensor} ${index} ${state.names++}`
  const also = when === undefined ? {} : { when }
  return {
    openChunk: [
      {
        kind: 'buffer',
        name: buffer,
        of: `${tensor}_${index}`,
        type: value.type,
        shape: 'chunk',
        zero: guarded || careful,
        from: [value],
      },
    ],
    anyElement: [{ kind: 'fill', buffer, tensor, value, ...(careful ? also : {}) }],
    leaveChunk: [
      {
        kind: 'storeChunk',
        access: withStart({ tensor, indices, run, index: loop.index }, state),
        buffer,
        from: [value],
        ...also,
      },
    ],
  }
}

/** The store of a member: the first one of a group declares the registers of all, and stores them. */
function lowerMember(
  { tensor, value, loop, interleaved: { factor, member, first } }: LoopStore & { readonly interleaved: Interleaved },
  { state, guarded, index, groups }: About,
): LoweredStmt {
  const buffer = `groups of ${tensor}`
  const fill: Loop = { kind: 'fill', buffer, tensor, value, place: { factor, member } }
  if (member > 0) return { anyElement: [fill] }
  const group = groups.find((each) => each.some((one) => one.tensor === tensor)) ?? []
  const access = withStart({ tensor, indices: first, run: Number.POSITIVE_INFINITY, index: loop.index, factor }, state)
  const members = group.map(({ indices, interleaved }) => ({ indices, member: interleaved.member }))
  const from = group.map((each) => each.value)
  return {
    openChunk: [
      { kind: 'buffer', name: buffer, of: `${tensor}_${index}`, type: value.type, shape: 'chunk', factor, zero: guarded, from },
    ],
    anyElement: [fill],
    leaveChunk: [{ kind: 'storeChunk', access, buffer, from, members }],
  }
}

const lowerShared = (row: SharedRow): LoweredStmt => ({
  declare: [{ kind: 'shared', row }],
  element: [{ kind: 'put', row: row.name, index: row.loop.index, value: row.value }],
  finish: [{ kind: 'barrier', publishes: [row.name], from: passStatementOf(row).values(row) }],
})
