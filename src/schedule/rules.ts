/** Rules of the default schedule, each with its reason: the vector width, and sizes at which one form of a loop becomes slower than another. */

import { dtypeInfo } from '../ir/dtype.js'
import type { Expr, ExprOf } from '../ir/expr.js'
import { type Instance, resolveDType } from '../ir/instance.js'
import { stepOf } from '../ir/polynomial.js'
import { visit } from '../ir/walk.js'
import { offsetOf } from './access/access.js'
import type { NormalKernel } from './normalise/normal.js'
import { contains, hashOf } from './normalise/rewrite.js'

/**
 * Most columns and places of a plane that one row of all elements stores faster than tiles (stage.cuh): the tile of at most four columns has 4,096 places.
 * A permutation of 2 x 2 x 56 x 56 to 56 x 2 x 56 x 2 in tiles took 203 us on an H200 where a copy of its bytes takes 12.
 */
export const smallPlane = { columns: 4, places: 1024 }

/** A vector access is one 16-byte instruction. More than 8 elements per chunk cost registers and gain nothing. */
export const packBytes = 16
export const maxVec = 8

/**
 * Elements per chunk: as many as fill a 16-byte access of the smallest tensor that is read or written in chunks. One if each element sums up its
 * own loads, or makes several beside its place: neighbouring threads then make coalesced loads at every step of their sums.
 */
export function vectorWidth(instance: Instance, kernel: NormalKernel): number {
  if (kernel.elementwise && (sumsUp(kernel) || readsAround(instance, kernel))) return 1
  const sizes: number[] = []
  const runs: number[] = []
  const groups: number[] = []
  for (const row of kernel.rows.values()) {
    if (row.kind !== 'loaded') continue
    sizes.push(dtypeInfo[row.dtype].bytes)
    runs.push(row.run)
  }
  for (const s of kernel.statements) {
    if (s.kind !== 'loopStore' || s.run === undefined) continue
    const tensor = instance.kernel.tensors.find((t) => t.name === s.tensor)
    if (tensor === undefined) continue
    const { bytes } = dtypeInfo[resolveDType(tensor.dtype, instance.types)]
    sizes.push(bytes)
    runs.push(s.run)
    if (s.interleaved !== undefined) groups.push(bytes * s.interleaved.factor)
  }
  if (sizes.length === 0) return 1
  let vec = Math.min(packBytes / Math.min(...sizes), maxVec)
  while (runs.some((run) => run % vec !== 0 && run !== Number.POSITIVE_INFINITY)) vec /= 2
  // A warp stores whole sectors with each instruction if a thread's groups are one access.
  while (groups.some((bytes) => vec * bytes > packBytes)) vec /= 2
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
