/**
 * A schedule choice as data: the team that computes a row and the vector width, independent of any kernel. `heddle tune` measures choices and a
 * tuning file stores them. `mapKernel` turns a choice into a variant, after checking it against the kernel.
 */
import { z } from 'zod'
import { chunksApart, type ElementwiseVariant, type Limit, type MappedKernel, type Team, type Variant } from '../mapped.js'
import { isLegal, valuesThatFit } from '../rows/lanes.js'
import { hasMemory } from '../rows/resident_rows.js'
import { isTile, type TileChoice, tileName } from '../tiles.js'

const count = z.number().int().positive()

const teamSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('thread'), rowsPerBlock: count }),
  z.strictObject({ kind: z.literal('warp'), lanes: count, rowsPerBlock: count }),
  z.strictObject({ kind: z.literal('block'), lanes: count }),
])

export const choiceSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('rows'),
    team: teamSchema,
    /** Number of chunks of `vec` values that a lane keeps in registers, or `reread` if every pass reads the row again. */
    chunks: z.union([count, z.literal('reread')]),
    vec: count,
  }),
  z.strictObject({ kind: z.literal('elementwise'), vec: count, threads: count }),
])

export type ScheduleChoice = z.infer<typeof choiceSchema>
export type RowChoice = ScheduleChoice & { readonly kind: 'rows' }

const warp = 32
const maxThreads = 1024
/** A block of more threads leaves each thread fewer registers than the budget of kept rows assumes. */
const maxThreadsOfMany = 512

const isPowerOfTwo = (n: number): boolean => Number.isInteger(Math.log2(n))
const lanesOf = (team: Team): number => (team.kind === 'thread' ? 1 : team.lanes)
const threadsOf = (team: Team): number =>
  team.kind === 'thread' ? team.rowsPerBlock : team.lanes * (team.kind === 'warp' ? team.rowsPerBlock : 1)

/** Name of a choice for sources and files: `warp32x4_c3_v8`, `block512_reread_v8`, `threads256_v4`, or a tile's name. */
export function choiceName(choice: ScheduleChoice | TileChoice): string {
  if (isTile(choice)) return tileName(choice)
  if (choice.kind === 'elementwise') return `threads${choice.threads}_v${choice.vec}`
  const { team, chunks, vec } = choice
  const who = team.kind === 'thread' ? `thread${team.rowsPerBlock}` : `${team.kind}${team.lanes}`
  return `${who}${team.kind === 'warp' ? `x${team.rowsPerBlock}` : ''}_${chunks === 'reread' ? chunks : `c${chunks}`}_v${vec}`
}

const programWords: Readonly<Record<MappedKernel['program']['kind'], string>> = {
  elementwise: 'elementwise programs',
  rows: 'row programs',
  columns: 'column programs, whose schedule follows from their sizes,',
  totals: 'programs of totals, whose schedule follows from their sizes,',
}

/** Reason, in words, why a kernel cannot have a choice for rows of `length` elements; undefined if it can. */
export function problemOf(choice: ScheduleChoice, { program, vec }: MappedKernel, length: number): string | undefined {
  if (choice.kind !== program.kind) return `the kernel has ${programWords[program.kind]} only`
  if (program.kind === 'elementwise' && program.staging !== undefined)
    return 'the kernel computes tiles, whose schedule follows from their sizes'
  if (!isPowerOfTwo(choice.vec) || choice.vec > vec) return `vec: expected a power of two up to ${vec}, got ${choice.vec}`
  if (choice.kind === 'elementwise') {
    const { threads } = choice
    return threads % warp === 0 && threads <= maxThreads
      ? undefined
      : `threads: expected a multiple of 32 up to 1024, got ${threads}`
  }
  if (program.kind !== 'rows') return undefined
  if (!isLegal(choice.team, program.kept))
    return 'the kernel ranks rows, which needs a block or all 32 lanes of a warp per row, or sorts them, which needs a block'
  const chunks = choice.chunks === 'reread' ? undefined : choice.chunks
  if (!hasMemory({ team: choice.team, chunks }, program.kept, choice.vec))
    return 'the kernel keeps rows whole, and they do not fit in the shared memory of a block of this team'
  return teamProblem(choice.team) ?? valuesProblem(choice, valuesThatFit(program.kept), length)
}

function teamProblem(team: Team): string | undefined {
  const threads = threadsOf(team)
  if (threads % warp !== 0 || threads > maxThreads)
    return `threads per block: expected a multiple of 32 up to 1024, got ${threads}`
  if (team.kind !== 'warp' || (isPowerOfTwo(team.lanes) && team.lanes > 1 && team.lanes <= warp)) return undefined
  return `lanes of a warp: expected 2, 4, 8, 16 or 32, got ${team.lanes}`
}

function valuesProblem({ team, chunks, vec }: RowChoice, most: number, length: number): string | undefined {
  if (chunks === 'reread') return undefined
  const holds = lanesOf(team) * chunks * vec
  if (holds < length) return `the team holds ${holds} values, rows have ${length}`
  if (chunks * vec > most) return `a lane keeps ${chunks * vec} values of a row, at most ${most} fit its registers`
  return chunks > 1 && threadsOf(team) > maxThreadsOfMany
    ? `lanes of a block over ${maxThreadsOfMany} threads keep one chunk`
    : undefined
}

/**
 * Name of the order in which the values of a row of `length` elements are combined. Choices of one order give the same bits
 * (native/device/team.cuh), so the number of rows may select among them. Choices of different orders differ in rounding.
 * @param isOwn true if every team has an order of its own, as in sums of segments, whose lengths are data
 */
export function orderOf(choice: ScheduleChoice, length: number, isOwn = false): string {
  if (choice.kind === 'elementwise') return 'none'
  const { team, vec } = choice
  const apart = chunksApart(team, choice.chunks === 'reread' ? undefined : choice.chunks)
  const isApart = team.kind === 'block' && team.lanes * apart * vec >= length
  if (!isOwn && (isApart || (team.kind === 'warp' && team.lanes === warp))) return `32 slots of ${vec}`
  return `${team.kind} of ${lanesOf(team)}, ${vec}`
}

/** The choice that a variant of a row program with chunks of `vec` represents. */
export const choiceOf = ({ team, chunks, vec }: Variant, kernelVec: number): RowChoice => ({
  kind: 'rows',
  team,
  chunks: chunks ?? 'reread',
  vec: vec ?? kernelVec,
})

/** A choice for a row program as a variant. */
export const rowVariant = ({ team, chunks, vec }: RowChoice, about: { name: string; limit: Limit; reason: string }): Variant => ({
  ...about,
  team,
  chunks: chunks === 'reread' ? undefined : chunks,
  vec,
})

/** A choice for an elementwise program as a variant. */
export const elementwiseVariant = (
  { vec, threads }: ScheduleChoice & { readonly kind: 'elementwise' },
  about: { name: string; limit: Limit; reason: string },
): ElementwiseVariant => ({ ...about, vec, threads })
