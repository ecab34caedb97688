/** Registers and shared memory of column programs: they decide how wide chunks are, and how many parts a thread divides its rows into. */
import { ownKey } from '../../ir/own_key.js'
import type { DividedStep } from './divided_program.js'

/** Columns that are worth a chunk. */
export const fewestColumns = 4

/** Partial results and chunks that several parts of a thread may hold in registers, and the most parts. */
const heldValues = 64
const mostParts = 8
/** Chunks that a thread loads at once, at least: fewer leave memory idle. */
const fewestLoads = 4
/** Partial results of a single part: beyond them registers spill. */
const mostRegisters = 192
/** Words of results of a thread's columns: in 32 KiB a block has two buffers of them for each of its warps. */
const mostExchanged = 64

/** Partial results of a column, a field of an author's monoid each, in the walk that has the most. */
const fieldsOf = (sequence: readonly DividedStep[]): number =>
  Math.max(0, ...sequence.map((step) => (step.kind === 'pass' ? step.reductions.flatMap(({ values }) => values).length : 0)))

/** Words of the results that threads exchange: each monoid has shared memory of its own. */
function exchangedWords(sequence: readonly DividedStep[]): number {
  const words = new Map<string, number>()
  for (const { stmt, values } of sequence.flatMap((step) => (step.kind === 'pass' ? step.reductions : []))) {
    const isPlaced = stmt.monoid === 'argmax' || stmt.monoid === 'argmin'
    if (stmt.kind === 'merge') words.set(ownKey(stmt.monoid), values.length)
    else words.set(`${stmt.monoid} ${values[0]?.type}`, isPlaced ? 2 : 1)
  }
  return [...words.values()].reduce((sum, each) => sum + each, 0)
}

/** The widest chunks, of at most `vec` columns, whose results have room; undefined where those of the narrowest have none. */
export function widthWithRoom(sequence: readonly DividedStep[], vec: number): number | undefined {
  const [fields, words] = [fieldsOf(sequence), exchangedWords(sequence)]
  let width = vec
  while (width >= fewestColumns && (width * fields > mostRegisters || width * words > mostExchanged)) width /= 2
  return width < fewestColumns ? undefined : width
}

/** Chunks that a thread loads of a row, in the walk that has the most. */
const loadsOf = (sequence: readonly DividedStep[]): number =>
  Math.max(0, ...sequence.map((step) => (step.kind === 'pass' || step.kind === 'stores' ? step.loads.length : 0)))

/** Chunks that a thread loads of each part at once: results of many fields leave it few parts, and memory answers late. */
export function loadsOfPart(sequence: readonly DividedStep[], parts: number): number {
  let each = 1
  while (each * parts * loadsOf(sequence) < fewestLoads) each *= 2
  return each
}

/** Parts of a thread's rows: it holds the chunks of one walk and its partial results for each of them. */
export function partsOf(sequence: readonly DividedStep[], vec: number): number {
  const held = Math.max(fieldsOf(sequence), loadsOf(sequence))
  let parts = mostParts
  while (parts > 1 && parts * vec * held > heldValues) parts /= 2
  return parts
}
