/** Walks of each kind of mapped program: elements, rows, columns and totals. Blocks are those that the launchers make (src/emit, native/device). */
import { dtypeInfo } from '../ir/dtype.js'
import {
  type ChunkLoad,
  type ColumnProgram,
  type DividedStep,
  hasSections,
  type TotalProgram,
  walkOf,
} from '../schedule/divided/divided_program.js'
import { type HeldLoad, heldLoads } from '../schedule/divided/held_loads.js'
import type { Reduced } from '../schedule/divided/reduction.js'
import { intervalIn, type MappedKernel } from '../schedule/mapped.js'
import { type ChunkForm, columnChecks, columnForm } from './chunk_forms.js'
import { reducing, teamInstructions } from './combining.js'
import { elementWalks } from './element_walks.js'
import { countedAxis, countedLoop, iterations } from './extents.js'
import { rowWalks } from './row_walks.js'
import type { Sizes } from './sizes.js'
import { blocksOf, type Counted, loopInstructions, product, type Walk, type WalkAccess, type Walks } from './walk.js'

/** The walks of one launch; those of launches in front are separate. */
export function walksOf(mapped: MappedKernel, sizes: Sizes): Walks {
  const { program, axes } = mapped
  const outer = axes.map((axis) => countedAxis(axis, intervalIn(mapped), sizes))
  switch (program.kind) {
    case 'elementwise':
      return elementWalks(mapped, program, outer, sizes)
    case 'rows':
      return rowWalks(mapped, program, outer, sizes)
    case 'columns':
      return columnWalks(mapped, program, outer, sizes)
    case 'totals':
      return totalWalks(mapped, program, outer, sizes)
  }
}

const combined = (all: readonly Reduced[]): number => all.reduce((sum, { stmt }) => sum + reducing(stmt), 0)

const chunksOf = (
  loads: readonly { readonly load: Omit<WalkAccess, 'vec'> }[],
  vec: number,
  form: ChunkForm = 'packs',
): readonly WalkAccess[] => loads.map(({ load: { tensor, indices } }) => ({ tensor, indices, vec, form }))

/** Chunks of columns of a block's tile: fewer where tiles would not fill the device twice (choose_columns, native/device/columns.cuh). */
const wideTile = 8
const narrowTile = 4
const lanesOfChunk = 32

function columnWalks(mapped: MappedKernel, program: ColumnProgram, outer: readonly Counted[], sizes: Sizes): Walks {
  const { vec } = mapped
  const { column, length, parts, each, sequence } = program
  const columns: Counted = { index: column.index, count: iterations(length, sizes) }
  const around = [...outer, columns]
  const order = [columns, ...[...outer].reverse()]
  const form = columnForm(mapped, columns.count, vec)
  const all = sequence.map((step) => columnWalk(step, { around, order, vec, form }, sizes))
  const tiles = (width: number): number => product(outer) * Math.max(1, Math.ceil(columns.count / (width * vec)))
  const rows = product(all.flatMap(({ serial, loops }) => loops.filter(({ index }) => serial.includes(index))).slice(0, 1))
  const inSections = hasSections(program) && rows > rowsOfCluster
  const isWide = inSections || tiles(wideTile) >= 2 * usualMultiprocessors
  const blocks = isWide ? tiles(wideTile) : tiles(narrowTile)
  const divided = blocks < usualMultiprocessors ? blocks * parts : blocks
  const threads = (isWide ? wideTile : narrowTile) * lanesOfChunk
  const isFew = rows <= fewRowsOfPart * parts
  const rowsOfThread = isFew ? rows : Math.ceil(rows / (lanesOfChunk * (divided / blocks)))
  const held = heldLoads(program)
  const bytes = held.reduce((sum, { first }) => sum + wordBytes(vec * dtypeInfo[first.dtype].bytes), 0)
  const holds = rowsOfThread * (isFew ? fewThreads : threads) * bytes <= mostHeldBytes
  return {
    walks: holds ? all.map((walk, i) => withoutHeld(walk, sequence[i], sequence.slice(0, i), held)) : all,
    blocks: inSections ? blocks * sectionsOf(blocks, rows) : divided,
    threads,
    unrolled: each,
    isAgain: true,
    rereads: false,
  }
}

/** Rows of a part that are a thread's, and threads of its block (run_few_rows); and the memory of rows that a block holds (native/device/held_rows.cuh). */
const fewRowsOfPart = 4
const fewThreads = 64
const mostHeldBytes = 108 * 1024
const wordBytes = (bytes: number): number => Math.ceil(bytes / 16) * 16

/** The walk of a step without the loads that an earlier step has left on chip. */
function withoutHeld(
  walk: Walk,
  step: DividedStep | undefined,
  earlier: readonly DividedStep[],
  held: readonly HeldLoad[],
): Walk {
  const loadsIn = (of: DividedStep | undefined): readonly ChunkLoad[] => (of !== undefined && 'loads' in of ? of.loads : [])
  const left = held.filter(({ loads }) => earlier.flatMap(loadsIn).some((load) => loads.includes(load)))
  const isTaken = loadsIn(step).map((load) => left.some(({ loads }) => loads.includes(load)))
  return { ...walk, reads: walk.reads.filter((_, i) => isTaken[i] !== true) }
}

/** Sections of the rows of a tile (choose_sections). */
const rowsOfCluster = 4096
const rowsOfSection = 256
const mostSections = 128
const sectionsOf = (tiles: number, rows: number): number => {
  const wanted = Math.floor((2 * usualMultiprocessors) / tiles)
  return Math.max(1, Math.min(wanted, Math.floor(rows / rowsOfSection), Math.max(mostSections, Math.floor(rows / 1024))))
}

/** Multiprocessors for which a launcher chooses tiles: of an H200. */
const usualMultiprocessors = 132

/** Threads of columns: their loops, and the form of their chunks. */
interface Columns {
  readonly around: readonly Counted[]
  readonly order: readonly Counted[]
  readonly vec: number
  readonly form: ChunkForm
}

function columnWalk(step: DividedStep, { around, order, vec, form }: Columns, sizes: Sizes): Walk {
  const axes = new Set(around.map(({ index }) => index))
  const base = {
    axes,
    perChunk: loopInstructions,
    order,
    vec,
    serial: [],
    reads: [],
    values: [],
    stores: [],
    extra: 0,
    isAwaited: false,
  }
  if (step.kind === 'let') return { ...base, loops: around, values: [step.value] }
  if (step.kind === 'store') {
    const { tensor, indices, value } = step
    return { ...base, loops: around, values: [value], stores: [{ tensor, indices, vec: 1 }] }
  }
  const own = step.loops.map((loop) => countedLoop(loop, sizes))
  const walk = {
    ...base,
    loops: [...around, ...own],
    serial: own.map(({ index }) => index),
    reads: chunksOf(step.loads, vec, form),
  }
  if (step.kind === 'pass')
    return {
      ...walk,
      values: step.reductions.flatMap(({ values }) => values),
      extra: combined(step.reductions) + columnChecks(form),
      isAwaited: true,
    }
  const stores = step.stores.map(({ tensor, indices, inChunks }) =>
    inChunks ? { tensor, indices, vec, form } : { tensor, indices, vec: 1 },
  )
  return { ...walk, values: step.stores.map(({ value }) => value), stores, extra: columnChecks(form) }
}

/** Threads of a block of totals, the chunks of one of its threads, and limits of parts (native/device/totals.cuh). */
const totalThreads = 256
const totalRounds = 8
const fewChunks = 512
const mostParts = 1024

function totalWalks({ vec }: MappedKernel, program: TotalProgram, outer: readonly Counted[], sizes: Sizes): Walks {
  const { loops, loads, reductions } = walkOf(program)
  const own = loops.map((loop) => countedLoop(loop, sizes))
  const around = [...[...own].reverse(), ...[...outer].reverse()]
  const walk: Walk = {
    axes: new Set(outer.map(({ index }) => index)),
    perChunk: loopInstructions,
    loops: [...outer, ...own],
    order: around,
    vec,
    serial: [],
    reads: chunksOf(loads, vec),
    values: reductions.flatMap(({ values }) => values),
    stores: [],
    extra: combined(reductions),
    isAwaited: true,
  }
  const scalars = program.sequence.flatMap((step) => (step.kind === 'let' || step.kind === 'store' ? [step] : []))
  const rest: Walk = {
    ...walk,
    loops: outer,
    order: [...outer].reverse(),
    vec: 1,
    reads: [],
    values: scalars.map(({ value }) => value),
    stores: scalars.flatMap((s) => (s.kind === 'store' ? [{ tensor: s.tensor, indices: s.indices, vec: 1 }] : [])),
    extra: teamInstructions * reductions.length * totalThreads,
    isAwaited: false,
  }
  const chunks = product(own) / vec
  const parts = Math.min(mostParts, Math.max(1, Math.ceil(chunks / (totalThreads * totalRounds))))
  const blocks = chunks <= fewChunks ? blocksOf(product(outer), 8) : product(outer) * parts
  return {
    walks: [walk, rest],
    blocks,
    threads: totalThreads,
    unrolled: totalRounds / 2,
    isAgain: false,
    rereads: false,
  }
}
