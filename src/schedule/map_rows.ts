/**
 * Rows and elements as one launch: normalise, order into passes, simplify, choose the variants. Part of the scheduler (map.ts), which runs it for each
 * launch of an op that no other program computes.
 */
import type { Expr } from '../ir/expr.js'
import { type Instance, instanceKey } from '../ir/instance.js'
import type { Kernel, RowAxis } from '../ir/kernel.js'
import { verifyKernel } from '../ir/verify.js'
import { rowsAreNeighbours, scalarsAreNeighbours } from './access/coalescing.js'
import { inGroups } from './access/groups.js'
import { rowsOfSector, withRows } from './access/shared_sectors.js'
import { stageLoads } from './access/staged_loads.js'
import { insideOf, intervalOf } from './divided/update_range.js'
import type { MappedKernel, Variant } from './mapped.js'
import { isHostExpr } from './normalise/host_expr.js'
import type { NormalKernel } from './normalise/normal.js'
import { type Chunks, normalise } from './normalise/normalise.js'
import { planSteps, type Step } from './normalise/passes.js'
import { simplifySteps } from './normalise/simplify.js'
import { isLegal, isProfitable } from './rows/lanes.js'
import { mostOf } from './rows/long_rows.js'
import { inOnePass } from './rows/one_pass.js'
import { isCarried } from './rows/recurrence_variants.js'
import { hasMemory } from './rows/resident_rows.js'
import { rowVariants } from './rows/variants.js'
import { elementwiseThreads, maxVec, vectorWidth } from './rules.js'
import { verifyMapped } from './verify/mapped.js'
import { verifyNormal, verifySteps } from './verify/verify.js'

/** Passes of a launch, in order. */
export const rowPasses = {
  inGroups,
  normalise,
  planSteps,
  simplifySteps,
  chooseVariants,
  inOnePass,
  stageLoads,
  intervalOf,
} as const

type RowPasses = typeof rowPasses

/** Result of a pass: a kernel of the IR, steps in execution order, or a mapped kernel. */
export interface SchedulePassResult {
  readonly kernel?: Kernel
  readonly steps?: readonly Step[]
  readonly mapped?: MappedKernel
}

/** Receives the result of each pass. */
export type See = (pass: string, made: SchedulePassResult) => void

/** Rows of an op, or groups of several axes, which are long; elements of windows, one per thread, or with loads in spans. */
type Rows = 'any' | 'groups' | 'single' | 'spans' | 'single spans'

/** Maps a kernel whose rows, or elements, are computed by threads of their own. @param placed the kernel with updates placed, windows found and axes merged */
export function mapRows(instance: Instance, placed: Instance, passes: RowPasses, see: See, rows: Rows = 'any'): MappedKernel {
  const normal = (of: Instance, chunks: Chunks): NormalKernel => {
    const kernel = passes.normalise(of, chunks)
    verifyNormal(kernel, of, 'normalising')
    return kernel
  }
  const steps = (kernel: NormalKernel, keep: boolean): Step[] => {
    const ordered = passes.planSteps(kernel, keep)
    verifySteps(ordered, kernel, placed, 'ordering passes')
    see(keep ? 'ordering passes, rows kept' : 'ordering passes, rows read again', { steps: ordered })
    const simplified = passes.simplifySteps(kernel, ordered)
    verifySteps(simplified, kernel, placed, 'simplifying')
    see(keep ? 'simplifying, rows kept' : 'simplifying, rows read again', { steps: simplified })
    return simplified
  }
  const groups = rows === 'any' ? passes.inGroups(placed) : undefined
  if (groups !== undefined) {
    verifyNormal(groups, placed, 'grouping interleaved accesses')
    return passes.chooseVariants(instance, groups, (keep) => steps(groups, keep))
  }
  const inSpans = rows === 'spans' || rows === 'single spans'
  const { kernel, asked, interval } = within(placed, passes, (of) => normal(of, inSpans ? 'in spans' : 'any'))
  const variants = passes.chooseVariants(instance, kernel, (keep) => steps(kernel, keep), rows)
  const chosen = joined(variants, asked, passes, (of) => steps(normal(of, 'any'), false), see)
  const mapped = interval === undefined ? chosen : { ...chosen, program: { ...chosen.program, interval } }
  if (interval !== undefined) {
    verifyMapped(mapped, 'finding the interval')
    see('finding the interval', { kernel: asked.kernel })
  }
  if (mapped.program.kind !== 'elementwise') return mapped
  if (inSpans) return mapped
  const { program, across } = mapped
  const staged = interval === undefined && across === undefined ? passes.stageLoads(placed, kernel, program.steps) : undefined
  if (staged !== undefined) return { ...mapped, program: { ...program, ...staged } }
  // Single elements of windows are read as the body has them.
  if (mapped.vec === 1 && placed.kernel.storedPlaces !== undefined) return mapped
  const inPieces = normal(asked, 'in pieces')
  // Without a boundary inside the row, the general steps already apply.
  if (inPieces.pieces === undefined || inPieces.pieces.bounds.size === 0 || loadedRows(inPieces) <= loadedRows(kernel))
    return mapped
  const { index, bounds } = inPieces.pieces
  const pieces = { index, bounds: [...bounds.values()], steps: steps(inPieces, false) }
  return { ...mapped, program: { ...program, pieces } }
}

/** The rows with reductions joined in the variants that read them again, if these read them less often. */
function joined(
  mapped: MappedKernel,
  asked: Instance,
  passes: RowPasses,
  steps: (of: Instance) => readonly Step[],
  see: See,
): MappedKernel {
  const { program } = mapped
  if (program.kind !== 'rows' || program.variants.every(({ chunks }) => chunks !== undefined)) return mapped
  const kernel = passes.inOnePass(asked.kernel)
  if (kernel === undefined) return mapped
  verifyKernel(kernel, 'joining reductions')
  see('joining reductions', { kernel })
  const reread = steps({ ...asked, kernel })
  return passesIn(reread) < passesIn(program.reread) ? { ...mapped, program: { ...program, reread, joined: kernel } } : mapped
}

const passesIn = (steps: readonly Step[]): number => steps.filter(({ kind }) => kind === 'pass').length

/**
 * The kernel inside the interval that it replaces, if there is one. Steps of a recurrence may need their neighbours. Unconditional loads of rows
 * would all be in flight at once, for which there are too few registers.
 */
function within(placed: Instance, { intervalOf: find }: RowPasses, normal: (given: Instance) => NormalKernel) {
  const whole = normal(placed)
  const interval = [...whole.rows.values()].some(isCarried)
    ? undefined
    : find(placed.kernel, besideNeighbours(whole), placed.dims)
  if (interval === undefined || !whole.elementwise) return { kernel: whole, asked: placed, interval }
  const asked = { ...placed, kernel: insideOf(placed.kernel, interval.bounds) }
  const kernel = normal(asked)
  // Without its conditions, neighbouring threads may run along another axis.
  const axis = besideNeighbours(kernel).find(({ index }) => index === interval.axis.index)
  return axis === undefined ? { kernel: whole, asked: placed } : { kernel, asked, interval: { ...interval, axis } }
}

/** Axes other than the one that neighbouring threads run along. */
const besideNeighbours = ({ axes, across }: NormalKernel): readonly RowAxis[] => axes.filter((axis) => axis !== across)

/** Number of rows that are read in chunks. */
const loadedRows = ({ rows }: NormalKernel): number => [...rows.values()].filter(({ kind }) => kind === 'loaded').length

/** Key of an instance. */
export const keyOf = ({ kernel, types, dims }: Instance): string => instanceKey(kernel.name, types, dims)

/** Chooses the widths, teams and variants of a kernel by the rules. */
function chooseVariants(
  instance: Instance,
  kernel: NormalKernel,
  steps: (keep: boolean) => readonly Step[],
  rows: Rows = 'any',
): MappedKernel {
  // In a recurrence with one thread per row, threads load the elements of several steps before they compute the first.
  const areNeighbours = [...kernel.rows.values()].some(isCarried) && rowsAreNeighbours(instance, kernel)
  const width = rows === 'single' || rows === 'single spans' ? 1 : vectorWidth(instance, kernel)
  const vec = areNeighbours && width === 1 ? maxVec : width
  const base = {
    instance,
    key: keyOf(instance),
    axes: kernel.axes,
    across: kernel.across,
    vec,
  }
  if (kernel.elementwise) return { ...base, program: { kind: 'elementwise', steps: steps(false), threads: elementwiseThreads } }
  const kept = steps(true)
  const lengths = hostLengths(kernel)
  const isUsable = (each: Variant): boolean =>
    isLegal(each.team, kept) && hasMemory(each, kept, each.vec ?? vec) && isProfitable(each, kept, vec)
  const adjacent = areNeighbours ? 1 : rowsOfSector(instance, kernel)
  const variants = rowVariants(kept, vec, lengths !== undefined, {
    areNeighbours: areNeighbours || scalarsAreNeighbours(instance, kernel),
    areGroups: rows === 'groups',
    most: Math.max(0, ...(lengths ?? []).map((length) => mostOf(length, instance.kernel))),
  }).flatMap((each) => [withRows(each, adjacent), each].find(isUsable) ?? [])
  return { ...base, program: { kind: 'rows', kept, reread: steps(false), lengths, variants } }
}

/** Lengths of all loops, or upper bounds of them; undefined unless they follow from dimensions and attributes alone. */
function hostLengths(kernel: NormalKernel): readonly Expr[] | undefined {
  const bounds = kernel.loops.flatMap((loop) => hostBound(loop.length) ?? [])
  const bins = kernel.statements.flatMap((s) => (s.kind === 'counts' ? [s.bins] : []))
  return bounds.length === kernel.loops.length ? [...bounds, ...bins.filter(isHostExpr)] : undefined
}

/** A length that follows from dimensions and attributes, or an upper bound of it: that of a part of a row, of which the last may be shorter. */
function hostBound(length: Expr): Expr | undefined {
  if (isHostExpr(length)) return length
  return length.kind === 'call' && length.fn === 'minimum' ? length.args.find(isHostExpr) : undefined
}
