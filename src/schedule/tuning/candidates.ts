/**
 * Schedules worth measuring for rows of one length: every team shape that holds the row without leaving most of its lanes idle. Used by `heddle
 * tune`; the rules do not depend on it.
 */

import { accepts, type MappedKernel, type RowProgram, stepsOf, type Team } from '../mapped.js'
import { fewRows } from '../rules.js'
import { choiceName, choiceOf, orderOf, problemOf, type RowChoice, type ScheduleChoice } from './choice.js'

const warp = 32
const blockSizes = [64, 128, 256]
/** Narrower chunks are tried with one block size: they rarely win, and every candidate is compiled. */
const narrowBlocks = [128]
const elementwiseBlocks = [64, 128, 256, 512]
const groups = [4, 8, 16, 32]
const chunkCounts = [1, 2, 3, 4]
const rereadBlocks = [128, 256, 512, 1024]
/** Longest row that one thread computes. */
const threadRow = 32

/** Legal choices for rows of `length` elements, each once, in a fixed order. They include those that equal a rule of that length. */
export function candidatesFor(mapped: MappedKernel, length: number): ScheduleChoice[] {
  if (isFixed(mapped)) return []
  const wanted = mapped.program.kind === 'elementwise' ? elementwise(mapped.vec) : rowChoices(mapped.vec, length)
  const seen = new Map<string, ScheduleChoice>()
  for (const choice of wanted) if (problemOf(choice, mapped, length) === undefined) seen.set(choiceName(choice), choice)
  return [...seen.values()]
}

/** True for a kernel whose schedule follows from its sizes alone. */
const isFixed = ({ program }: MappedKernel): boolean =>
  program.kind === 'columns' || program.kind === 'totals' || (program.kind === 'elementwise' && program.staging !== undefined)

const widths = (vec: number): number[] => (vec > 1 ? [vec, vec / 2] : [vec])

const elementwise = (most: number): ScheduleChoice[] =>
  widths(most).flatMap((vec) => elementwiseBlocks.map((threads): ScheduleChoice => ({ kind: 'elementwise', vec, threads })))

function rowChoices(most: number, length: number): RowChoice[] {
  const kept = widths(most).flatMap((vec) => teamsFor(length, vec, vec === most ? blockSizes : narrowBlocks))
  const whole: Team[] = [
    { kind: 'warp', lanes: warp, rowsPerBlock: 4 },
    ...rereadBlocks.filter((lanes) => lanes <= 2 * Math.ceil(length / most)).map((lanes): Team => ({ kind: 'block', lanes })),
  ]
  return [...kept, ...whole.map((team): RowChoice => ({ kind: 'rows', team, chunks: 'reread', vec: most }))]
}

/** Teams that keep a row in registers, in chunks of `vec`. */
function teamsFor(length: number, vec: number, sizes: readonly number[]): RowChoice[] {
  const chunks = Math.ceil(length / vec)
  const choice = (team: Team, lanes: number): RowChoice => ({ kind: 'rows', team, chunks: Math.ceil(chunks / lanes), vec })
  const threads = length > threadRow ? [] : sizes.map((rowsPerBlock) => choice({ kind: 'thread', rowsPerBlock }, 1))
  const warps = groups
    .filter((lanes) => lanes < 2 * chunks)
    .flatMap((lanes) => sizes.map((size) => choice({ kind: 'warp', lanes, rowsPerBlock: size / lanes }, lanes)))
  // As many whole warps as leave no lane without a chunk.
  const blocks = chunkCounts
    .map((each) => Math.ceil(Math.ceil(chunks / each) / warp) * warp)
    .filter((lanes) => lanes > warp)
    .map((lanes) => choice({ kind: 'block', lanes }, lanes))
  return [...threads, ...warps, ...blocks]
}

/** Choices of the rules for rows of `length` elements: one for few rows and one for many, often the same. */
export function ruleChoices(mapped: MappedKernel, length: number): ScheduleChoice[] {
  const { vec, program } = mapped
  if (isFixed(mapped)) return []
  if (program.kind === 'elementwise') return [{ kind: 'elementwise', vec, threads: program.threads }]
  if (program.kind === 'columns' || program.kind === 'totals') return []
  const found = [1, fewRows + 1].flatMap((rows) => ruleVariant(program, length, rows) ?? [])
  return found.map((variant) => choiceOf(variant, vec))
}

const ruleVariant = ({ variants }: RowProgram, length: number, rows: number) =>
  variants.find(({ limit }) => accepts(limit, rows, length))

/** True if a choice combines rows of `length` elements in the order of the rules, so that it may depend on the number of rows. */
export function keepsOrder(choice: ScheduleChoice, mapped: MappedKernel, length: number): boolean {
  const isOwn = stepsOf(mapped).some(({ kind }) => kind === 'team')
  return ruleChoices(mapped, length).every(
    (rule) =>
      isScaled(rule, mapped) === isScaled(choice, mapped) && orderOf(rule, length, isOwn) === orderOf(choice, length, isOwn),
  )
}

/** True if sums are scaled to a running maximum, which rounds them. */
const isScaled = (choice: ScheduleChoice, { program }: MappedKernel): boolean =>
  choice.kind === 'rows' && choice.chunks === 'reread' && program.kind === 'rows' && program.joined !== undefined
