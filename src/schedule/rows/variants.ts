/**
 * Variants of a row program, each with its reason: the threads of a row, and the chunks of it that a lane keeps in registers. Results must not depend on the
 * number of rows, so a limit of rows chooses only between variants that combine in the same order: a whole warp, and blocks that keep the chunks of a lane
 * apart (native/device/team.cuh).
 */

import { teamOf } from '../../ir/constructs/team_call.js'
import type { Expr } from '../../ir/expr.js'
import { numberOf } from '../access/access.js'
import { chunksApart, type Limit, totalsApart, type Variant } from '../mapped.js'
import type { Step } from '../normalise/passes.js'
import { fewRows } from '../rules.js'
import { blockThreads, carriedRows, fewValues, heldRows, holdsTotals, manyValues, meets, valuesThatFit, warp } from './lanes.js'
import { carries, foldVariants } from './recurrence_variants.js'

const someValues = 16
const threadLimit = 16
const groupLanes = 8
const wideBlock = 512
const rereadBlock = 512
const maxBlock = 1024

/** 32-bit registers per lane for the rows that a block of the most threads keeps: half of those that it has. */
const groupBudget = 32
/** The same for a wide block: with more, fewer blocks share a multiprocessor, and none loads while another waits. */
const longBudget = 48

/**
 * Variants of a row program, in the order in which the launcher tries them.
 * @param areGroups true for rows of several axes, which are long: a block of the most threads keeps them
 * @param most elements of a row, by facts or usual sizes
 */
export function rowVariants(
  kept: readonly Step[],
  vec: number,
  boundedLength: boolean,
  {
    areNeighbours = false,
    areGroups = false,
    most = Number.POSITIVE_INFINITY,
  }: { readonly areNeighbours?: boolean; readonly areGroups?: boolean; readonly most?: number } = {},
): Variant[] {
  const [carried] = carriedRows(kept)
  if (carried !== undefined) return [carried]
  if (carries(kept)) return foldVariants(kept, vec, boundedLength, valuesThatFit(kept), areNeighbours)
  const scalars = kept.flatMap((step) => (step.kind === 'team' ? [teamOf(step).widest] : []))
  const searches = scalars.includes('wide block')
  if (areNeighbours && kept.every((step) => step.kind !== 'pass') && scalars.length > 0 && !searches) return [scalarThreads]
  const reread: Variant = {
    name: 'block_reread',
    team: { kind: 'block', lanes: searches ? maxBlock : rereadBlock },
    chunks: undefined,
    limit: { length: undefined, rows: undefined },
    reason: boundedLength ? 'longer than registers hold: every pass reads the row again' : 'the row alone knows its length',
  }
  if (!boundedLength) return [reread]
  const short = keptVariants(kept, vec)
  const isLong = most > Math.max(...short.map(({ limit }) => limit.length ?? 0))
  const variants = [
    ...short,
    ...(isLong ? longVariants(kept, vec) : []),
    ...(areGroups && !searches ? groupVariants(kept, vec) : []),
  ]
  // A team combines a scalar in its own order: the number of rows may choose no other.
  const usable = variants.filter(
    (v) =>
      (v.chunks ?? 0) >= 1 &&
      !(searches && v.team.kind === 'block') &&
      !(scalars.length > 0 && v.limit.rows !== undefined) &&
      (v.team.kind !== 'block' || v.chunks === 1 || holdsTotals(kept, v.team.lanes, chunksApart(v.team, v.chunks))),
  )
  // A variant is unreachable if an earlier one without a row limit accepts all its lengths.
  const reached = usable.filter(
    (v, i) => !usable.slice(0, i).some((e) => takesAny(e) && (e.limit.length ?? 0) >= (v.limit.length ?? 0)),
  )
  return [...reached, reread]
}

/** Variants that the launcher may take for rows of these lengths, of which it counts the longest: numbers exclude shorter rows, and if all are, longer ones. */
export function reachable(variants: readonly Variant[], lengths: readonly Expr[]): readonly Variant[] {
  const known = lengths.flatMap((length) => numberOf(length) ?? [])
  const least = Math.max(0, ...known)
  const accepting = variants.filter(({ limit }) => (limit.length ?? Number.POSITIVE_INFINITY) >= least)
  if (known.length === 0 || known.length < lengths.length) return accepting
  const last = accepting.findIndex(({ limit }) => takesAny({ limit }) && limit.tuned === undefined)
  return accepting
    .slice(0, last + 1)
    .map((each, i) => (i === last ? { ...each, limit: { ...each.limit, length: undefined } } : each))
}

/** True for a variant that takes any number of rows, whole chunks or not. */
const takesAny = ({ limit }: Pick<Variant, 'limit'>): boolean => limit.rows === undefined && limit.whole === undefined

/** A thread per row for scalars whose elements are contiguous from row to row. */
const scalarThreads: Variant = {
  name: 'thread_reread',
  team: { kind: 'thread', rowsPerBlock: blockThreads },
  chunks: undefined,
  limit: { length: undefined, rows: undefined },
  reason: 'neighbouring rows are contiguous: a thread each gives coalesced reads',
}

/** Variants that keep rows in registers, from the shortest rows to the longest. */
function keptVariants(kept: readonly Step[], vec: number): readonly Variant[] {
  const many = valuesThatFit(kept)
  const oneChunkLanes = Math.min(maxBlock, (warp * Math.max(many, manyValues)) / vec)
  const some = Math.min(someValues, many)
  return [
    {
      name: 'thread',
      team: { kind: 'thread', rowsPerBlock: blockThreads },
      chunks: threadLimit / vec,
      limit: { length: threadLimit, rows: undefined },
      reason: 'a row this short is one or two loads: no lane waits for another',
    },
    {
      name: 'lanes',
      team: { kind: 'warp', lanes: groupLanes, rowsPerBlock: blockThreads / groupLanes },
      chunks: some / vec,
      limit: { length: groupLanes * some, rows: undefined },
      reason: 'a row this short leaves lanes of a whole warp idle: a warp takes several',
    },
    {
      name: 'warp',
      team: { kind: 'warp', lanes: warp, rowsPerBlock: blockThreads / warp },
      chunks: fewValues / vec,
      limit: { length: warp * fewValues, rows: undefined },
      reason: 'few registers a lane, so many rows run at once, and no barrier',
    },
    {
      name: 'block',
      team: { kind: 'block', lanes: oneChunkLanes },
      chunks: 1,
      limit: { length: oneChunkLanes * vec, rows: many < manyValues ? undefined : fewRows, ...oddRows(kept, oneChunkLanes, vec) },
      reason: 'too few rows to fill the device with warps: one chunk a lane keeps the row short in time',
    },
    {
      name: 'warp_wide',
      team: { kind: 'warp', lanes: warp, rowsPerBlock: blockThreads / warp },
      chunks: many / vec,
      limit: { length: warp * many, rows: undefined },
      reason: 'the row fits the registers of one warp, and no barrier',
    },
    ...tallVariants(kept, vec, many),
    {
      name: 'block_wide',
      team: { kind: 'block', lanes: wideBlock },
      chunks: many / (2 * vec),
      limit: { length: (wideBlock * many) / 2, rows: undefined },
      reason: 'the row fits the registers of one block',
    },
  ]
}

/**
 * Blocks for rows that are too long for a warp. Of few rows, which run at once, a lane has one chunk; of many, two, so that a multiprocessor waits for more
 * of them at a time. On an H200, f16, 8,192 rows of 4,096 (us, 512 lanes of one chunk and 256 of two): softmax 43.3, 34.4, layer norm 53.3, 36.6, RMS norm
 * 37.9, 34.7, quantiser 33.2, 27.0; 32 rows: layer norm 1.74, 1.80, RMS norm 1.29, 1.45.
 */
function tallVariants(kept: readonly Step[], vec: number, many: number): readonly Variant[] {
  const inTwo = many >= totalsApart * vec && !meets(kept) && holdsTotals(kept, wideBlock / totalsApart, totalsApart)
  return [wideBlock / 2, wideBlock].flatMap((lanes): Variant[] => {
    const name = lanes === wideBlock ? 'block_tall' : 'block_mid'
    const length = lanes * vec
    const one: Variant = {
      name,
      team: { kind: 'block', lanes },
      chunks: 1,
      limit: { length, rows: inTwo ? fewRows : undefined },
      reason: 'one chunk a lane: its loads are in flight together, and vectors such as gamma are prefetched',
    }
    const two: Variant = {
      name: `${name}_wide`,
      team: { kind: 'block', lanes: lanes / totalsApart },
      chunks: totalsApart,
      limit: { length, rows: undefined },
      reason: 'two chunks a lane: a multiprocessor has more loads of many rows in flight',
    }
    return inTwo ? [one, two] : [one]
  })
}

/** Loads of an element from which on a warp that has a whole row with chunks of single elements has too few registers. */
const manyLoads = 4

/**
 * Rows without whole chunks, of kernels that read many tensors, that a block with one chunk a lane computes, however many: a warp with four would load
 * its elements one by one. Bias, residual and layer norm of 4,096 rows in f16 (H200): 1,023 elements 24.2 -> 12.8 us, 801 20.4 -> 11.6, 517 22.2 -> 18.
 * With three tensors, a layer norm gains 8 % at 1,023 and loses 8 % at 517.
 */
function oddRows(kept: readonly Step[], lanes: number, vec: number): Pick<Limit, 'odd'> {
  const loads = new Set<string>()
  let isPlain = vec > 1
  for (const step of kept) {
    if (step.kind !== 'pass') continue
    for (const row of step.pass.rows) if (row.kind === 'loaded') loads.add(row.name)
    isPlain &&= step.pass.statements.every(({ kind }) => kind === 'reduce' || kind === 'loopStore')
  }
  return isPlain && loads.size >= manyLoads ? { odd: { above: (3 * lanes * vec) / 4, width: vec } } : {}
}

/**
 * Variants for rows that are several chunks a lane of a wide block. On an H200, f16, us, in wide blocks, in blocks of the most threads, and read again:
 * softmax of 4,096 x 16,384 67, 126, 78, of 8,192 x 10,000 88, 201, 143, of 1,024 x 32,000 37, 51, 44, layer norm of 2,048 x 16,384 39, 58, 39. Rows
 * that are no whole chunks lose 6 to 13 %, and those of two tensors up to 23 %.
 */
function longVariants(steps: readonly Step[], vec: number): readonly Variant[] {
  const passes = steps.flatMap((step) => (step.kind === 'pass' ? [step.pass] : []))
  const isPlain = passes.every(({ statements }) => statements.every(({ kind }) => kind === 'reduce' || kind === 'loopStore'))
  const kept = passes.flatMap(({ rows }) => rows.filter(({ keep }) => keep))
  if (!isPlain || kept.length === 0 || kept.filter(({ kind }) => kind === 'loaded').length > 1) return []
  const { bytes, weights } = heldRows(steps)
  const registers = (chunks: number): number => ((bytes * chunks + weights) * vec) / 4
  return [4, 8, 16].flatMap((chunks): readonly Variant[] => {
    if (registers(chunks) > longBudget) return []
    return [
      {
        name: `block_long${chunks}`,
        team: { kind: 'block', lanes: wideBlock },
        chunks,
        limit: { length: wideBlock * chunks * vec, rows: undefined, ...(vec === 1 ? {} : { whole: vec }) },
        reason: 'the row fits the registers of one block, of which a multiprocessor has several',
      },
    ]
  })
}

/** Variants for long rows: a block of the most threads, with half of the chunks that its registers hold, or all of them. */
function groupVariants(kept: readonly Step[], vec: number): Variant[] {
  const { bytes, weights } = heldRows(kept)
  const registers = groupBudget - (weights * vec) / 4
  const chunks = Math.floor((4 * registers) / Math.max(1, bytes) / vec)
  return [...new Set([Math.floor(chunks / 2), chunks])].map(
    (each): Variant => ({
      name: each === chunks ? 'block_longest' : 'block_long',
      team: { kind: 'block', lanes: maxBlock },
      chunks: each,
      limit: { length: maxBlock * each * vec, rows: undefined },
      reason: 'the group fits the registers of one block of the most threads: it is read once',
    }),
  )
}
