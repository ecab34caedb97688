/**
 * Rules of the default schedule, each with its reason. Vector width first, then the variants of a row program.
 *
 * Results must not depend on the number of rows. A rule that reads the row count may therefore only choose between variants that combine in the
 * same order: a whole warp and a block (native/device/team.cuh).
 */

import { mostCarried } from '../ir/constructs/fold_state.js'
import { teamOf } from '../ir/constructs/team_call.js'
import { dtypeInfo } from '../ir/dtype.js'
import type { Expr, ExprOf } from '../ir/expr.js'
import { type Instance, resolveDType } from '../ir/instance.js'
import { stepOf } from '../ir/polynomial.js'
import { visit } from '../ir/walk.js'
import { offsetOf } from './access/access.js'
import { passStatementOf } from './constructs/index.js'
import type { Limit, Team, Variant } from './mapped.js'
import type { NormalKernel } from './normalise/normal.js'
import type { Step } from './normalise/passes.js'
import { contains, hashOf } from './normalise/rewrite.js'
import { carries, foldVariants } from './rows/recurrence_variants.js'

/**
 * Most columns and places of a plane that one row of all elements stores faster than tiles (stage.cuh): the tile of at most four columns has 4,096 places.
 * A permutation of 2 x 2 x 56 x 56 to 56 x 2 x 56 x 2 in tiles took 203 us on an H200 where a copy of its bytes takes 12.
 */
export const smallPlane = { columns: 4, places: 1024 }

/** A vector access is one 16-byte instruction. More than 8 elements per chunk cost registers and gain nothing. */
const packBytes = 16
export const maxVec = 8

/**
 * Elements per chunk: as many as fill a 16-byte access of the smallest tensor that is read or written in chunks. One if each element sums up its
 * own loads, or makes several beside its place: neighbouring threads then make coalesced loads at every step of their sums.
 */
export function vectorWidth(instance: Instance, kernel: NormalKernel): number {
  if (kernel.elementwise && (sumsUp(kernel) || readsAround(instance, kernel))) return 1
  const sizes: number[] = []
  const runs: number[] = []
  for (const row of kernel.rows.values()) {
    if (row.kind !== 'loaded') continue
    sizes.push(dtypeInfo[row.dtype].bytes)
    runs.push(row.run)
  }
  for (const s of kernel.statements) {
    if (s.kind !== 'loopStore' || s.run === undefined) continue
    const tensor = instance.kernel.tensors.find((t) => t.name === s.tensor)
    if (tensor === undefined) continue
    sizes.push(dtypeInfo[resolveDType(tensor.dtype, instance.types)].bytes)
    runs.push(s.run)
  }
  if (sizes.length === 0) return 1
  let vec = Math.min(packBytes / Math.min(...sizes), maxVec)
  while (runs.some((run) => run % vec !== 0 && run !== Number.POSITIVE_INFINITY)) vec /= 2
  return vec
}

function sumsUp({ rows, statements }: NormalKernel): boolean {
  const values = [...rows.values()].flatMap((row) => (row.kind === 'computed' ? [row.value] : []))
  for (const s of statements) if (s.kind === 'loopStore') values.push(s.value)
  const loads = (expr: Expr): boolean => contains(expr, ({ kind }) => kind === 'load')
  return values.some((value) => contains(value, (node) => node.kind === 'fold' && loads(node.value)))
}

/** Loads of an element beside its place that are worth a thread per element, and the elements between two places. */
const fewestAround = 3
const mostApart = 4

/** True if elements are windows that are written out, most of whose loads along the row are beside the place: no chunk of them is aligned. */
function readsAround({ kernel: { storedPlaces, tensors }, dims }: Instance, { rows, statements }: NormalKernel): boolean {
  if (storedPlaces === undefined) return false
  const around = new Set<string>()
  let chunks = 0
  const stepAlong = (load: ExprOf<'load'>, index: string): number | undefined => {
    const tensor = tensors.find(({ name }) => name === load.tensor)
    const step = tensor && stepOf(offsetOf(tensor, load.indices, dims), index)
    return step?.size === 1 ? step.get('') : undefined
  }
  const note = (expr: Expr, index: string): void =>
    visit(expr, (node) => {
      const step = node.kind === 'load' ? stepAlong(node, index) : undefined
      if (step !== undefined && Math.abs(step) <= mostApart) around.add(hashOf(node))
    })
  for (const row of rows.values()) {
    if (row.kind === 'computed') note(row.value, row.loop.index)
    if (row.kind !== 'loaded') continue
    if (row.load.indices.some((at) => at.kind === 'index' && at.name === row.loop.index)) chunks++
    else note(row.load, row.loop.index)
  }
  for (const s of statements) if (s.kind === 'loopStore') note(s.value, s.loop.index)
  return around.size >= fewestAround && around.size > chunks
}

export const elementwiseThreads = 256

/** Values of each row per lane: few for short rows, so that more rows run at once; many while registers last. */
const fewValues = 8
const someValues = 16
const manyValues = 32
/** The same for a ranked row: each participating warp inserts about as many elements as a warp that has the row to itself. */
const rankedValues = 64
/** 32-bit registers per lane for kept rows; the rest of 128 is for addresses and temporaries. */
const registerBudget = 72

const threadLimit = 16
const groupLanes = 8
const warp = 32
const blockThreads = 128
const wideBlock = 512
const rereadBlock = 512
const maxBlock = 1024
/** Below this many rows, one warp per row leaves most of a large GPU (132 multiprocessors, 4 schedulers each) idle. */
export const fewRows = 528

/** From this many groups on, blocks that read long groups again keep a large GPU as busy as launches that divide the groups. */
export const fewGroups = 264
/**
 * Columns with several walks are one launch up to this many rows, each of which is at most a few microseconds of one cluster, or from this many
 * chunks of columns on: clusters of eight blocks then have tiles for a large GPU.
 */
export const mostWalkedRows = 8191
export const fewestWalkedChunks = 64
/**
 * Bytes of a row from which on the blocks of the whole grid divide it. A batch must not change the bits of a row, so its length alone decides. On an H200,
 * a block per row takes 6 to 26 % less time for 256 to 4,096 rows of 64 to 160 KiB, and 1.2 to 2 times as much for 16 to 64 rows of 256 KiB.
 */
const dividedBytes = 192 << 10
/** The same of a single row. */
const dividedOneBytes = 64 << 10
/** The same where the number of rows may decide, too: few rows of 128 KiB take the same time in both forms, and half of it divided from 256 KiB on. */
const dividedExactBytes = 128 << 10
/** Rows from which on a block per row is never slower there, whatever the length of rows: a block per multiprocessor of a large GPU. */
const manyRows = 132

/** Rows that one block computes: of up to `kept` elements, or `many` of them. */
export interface RowsAlone {
  readonly kept: number
  readonly many?: number
}

/**
 * Rows that a block computes alone.
 * @param bytes of an element
 * @param is `one` for a single row; `exact` if any order of combination gives the same bits, so that a batch changes none
 */
export function rowsAlone(bytes: number, is: 'one' | 'exact' | 'rounded'): RowsAlone {
  const longest = (most: number): number => Math.floor(most / Math.max(1, bytes))
  if (is === 'exact') return { kept: longest(dividedExactBytes), many: manyRows }
  return { kept: longest(is === 'one' ? dividedOneBytes : dividedBytes) }
}

/**
 * Most columns of a group that each thread combines where it reads their sum: a launch that combines them takes 4 us on an H200, and a thread that reads
 * 8 columns of different groups of 64 less than half of it.
 */
export const mostCombinedColumns = 64

/** 32-bit registers per lane for the rows that a block of the most threads keeps: half of those that it has. */
const groupBudget = 32

/**
 * Variants of a row program, in the order in which the launcher tries them.
 * @param areGroups true for rows of several axes, which are long: a block of the most threads keeps them
 */
export function rowVariants(
  kept: readonly Step[],
  vec: number,
  boundedLength: boolean,
  { areNeighbours = false, areGroups = false }: { readonly areNeighbours?: boolean; readonly areGroups?: boolean } = {},
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
  const variants = [...keptVariants(kept, vec), ...(areGroups && !searches ? groupVariants(kept, vec) : [])]
  // A team combines a scalar in its own order: the number of rows may choose no other.
  const usable = variants.filter(
    (v) => (v.chunks ?? 0) >= 1 && !(searches && v.team.kind === 'block') && !(scalars.length > 0 && v.limit.rows !== undefined),
  )
  // A variant is unreachable if an earlier one without a row limit accepts all its lengths.
  const reached = usable.filter(
    (v, i) => !usable.slice(0, i).some((e) => e.limit.rows === undefined && (e.limit.length ?? 0) >= (v.limit.length ?? 0)),
  )
  return [...reached, reread]
}

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
    // On an H200, an RMS norm in f16 gains 5 to 18 % over a block of 256 lanes with more chunks at 1 to 1,056 rows of 4096, 8 to 18 % at rows of 8192.
    {
      name: 'block_tall',
      team: { kind: 'block', lanes: wideBlock },
      chunks: 1,
      limit: { length: wideBlock * vec, rows: undefined },
      reason: 'one chunk a lane: its loads are in flight together, and vectors such as gamma are prefetched',
    },
    {
      name: 'block_wide',
      team: { kind: 'block', lanes: wideBlock },
      chunks: many / (2 * vec),
      limit: { length: (wideBlock * many) / 2, rows: undefined },
      reason: 'the row fits the registers of one block',
    },
  ]
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

/**
 * Bytes per element of rows that a lane holds whole: rows for later passes, and rows that are loaded before their pass (src/loop/passes/place_loads.ts). Bytes
 * per element of those that are the same for every row, of which it holds a chunk.
 */
function heldRows(steps: readonly Step[]): { readonly bytes: number; readonly weights: number } {
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

/** Variant of a kernel with a recurrence that has row state: one warp per row, with as many rows per block as shared memory holds. */
function carriedRows(steps: readonly Step[]): Variant[] {
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
