/** Forms of the chunks of rows, by their length: packs, elements or pairs that lie apart, or single elements of 16 bytes at a time. */
import { apartColumns, apartVersion } from '../loop/kernel_loops.js'
import { oneRun } from '../schedule/access/one_run.js'
import type { MappedKernel } from '../schedule/mapped.js'

/**
 * Packs of whole, aligned rows; elements that lie apart, one by one or in pairs, so that neighbouring lanes share sectors (src/loop/passes/spread.ts); or
 * single consecutive elements, of which neighbouring lanes write parts of the same sectors again and again.
 */
export type ChunkForm = 'packs' | 'apart' | 'pairs' | 'single'

/** Instructions for each element that is not moved in a pack, by itself or with a neighbour: its check, its address, and its place in a word of the chunk. */
const checkInstructions = 2

/** Those instructions for an element of a chunk. */
export const checksOf = (form: ChunkForm): number =>
  form === 'packs' ? 0 : form === 'pairs' ? checkInstructions / 2 : checkInstructions

/**
 * Instructions for each element of columns that lie apart, in every walk: the loads of several rows are in flight, and each element is checked in each.
 * Of eleven softmaxes over channels and sums of them (f16, f32; H200) nine take 0.83 to 1.22 times the price that follows, the two over 49 places 2.2 and 1.7.
 */
const apartInstructions = 10

/** Those instructions of a column's element. */
export const columnChecks = (form: ChunkForm): number =>
  form === 'packs' ? 0 : form === 'pairs' ? apartInstructions / 2 : apartInstructions

/**
 * Share of the sectors of a warp's chunks that stores of single elements move again for each of them: 24.6 million elements of 16 bits in 88 us, of
 * 8 bits in 45 us (H200).
 */
export const singleShare = 0.8

/** Form of rows that a team shares. @param length of a row */
export function rowForm(mapped: MappedKernel, walk: 'kept' | 'reread', length: number, vec: number): ChunkForm {
  if (length % vec === 0) return 'packs'
  const version = apartVersion(mapped, walk)
  if (version === undefined) return 'single'
  return version.pairs === true && length % 2 === 0 ? 'pairs' : 'apart'
}

/** Form of the chunks of columns. @param count of columns */
export function columnForm(mapped: MappedKernel, count: number, vec: number): ChunkForm {
  if (count % vec === 0) return 'packs'
  const { apart, pairs } = apartColumns(mapped)
  return !apart ? 'single' : pairs && count % 2 === 0 ? 'pairs' : 'apart'
}

/** Form of rows whose chunks have a thread each. @param rows number of them */
export function elementForm(mapped: MappedKernel, rows: number, length: number, vec: number): ChunkForm {
  const isStaged = mapped.program.kind === 'elementwise' && mapped.program.staging !== undefined
  return length % vec === 0 || rows <= 1 || isStaged || oneRun(mapped) !== undefined ? 'packs' : 'single'
}
