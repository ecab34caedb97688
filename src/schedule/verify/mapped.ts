/**
 * Verifier of a mapped kernel, run after every pass that chooses variants: widths divide accesses in chunks, every row is accepted by some variant,
 * and the kernel can have every variant.
 */
import type { Fail } from '../../ir/check.js'
import type { Instance } from '../../ir/instance.js'
import { givenDims, type Kernel, type RowAxis } from '../../ir/kernel.js'
import { freeNames, visit } from '../../ir/walk.js'
import type { Staging } from '../access/staged_loads.js'
import { type DividedProgram, passesOf as dividedPassesOf } from '../divided/divided_program.js'
import type { Interval } from '../divided/update_range.js'
import type { ElementwiseProgram, FixedSizes, InRow, InRows, MappedKernel, RowProgram, Split, Variant } from '../mapped.js'
import { isHostExpr } from '../normalise/host_expr.js'
import { type Pass, passValues, type Step, statementsOf } from '../normalise/passes.js'
import { isLegal } from '../rows/lanes.js'
import { hasMemory } from '../rows/resident_rows.js'
import { maxVec } from '../rules.js'
import { failAfter } from './verify.js'

const warp = 32
const maxThreads = 1024

/** @throws an internal error naming pass, kernel and problem */
export function verifyMapped(mapped: MappedKernel, pass: string): void {
  const { program, vec, axes, across, instance } = mapped
  const fail = failAfter(pass, instance)
  checkWidth(vec, maxVec, fail)
  if (across !== undefined && !axes.includes(across)) fail(`neighbours run along ${across.index}, which is none of its axes`)
  if (mapped.split !== undefined) checkSplit(mapped.split, instance, fail)
  if (mapped.split?.inRows !== undefined) checkInRows(mapped.split.inRows, mapped.split.whole, pass, fail)
  const { columns } = mapped.split ?? {}
  const stored = columns?.launches.at(-1)
  if (mapped.split !== undefined && columns !== undefined && stored !== undefined)
    checkSplit({ ...mapped.split, before: columns.launches.slice(0, -1) }, stored.instance, fail)
  for (const launch of columns?.launches ?? []) verifyMapped(launch, pass)
  for (const each of mapped.split?.fixed ?? []) checkFixed(each, mapped.split?.whole ?? instance, pass, fail)
  if (mapped.split?.inRow !== undefined) checkInRow(mapped.split.inRow, mapped.split.whole, pass, fail)
  if (program.kind === 'columns' || program.kind === 'totals') {
    checkDivided(program, vec, fail)
    return
  }
  const walks = program.kind === 'rows' ? [program.kept, program.reread] : walksOf(program)
  for (const runs of walks.flatMap(passesOf).map(runsOf))
    for (const [what, run] of runs)
      if (run !== Number.POSITIVE_INFINITY && run % vec !== 0)
        fail(`chunks of ${vec} do not divide the runs of ${run} of ${what}`)
  if (program.kind === 'rows') checkRows(program, mapped, fail)
  else checkElementwise(program, vec, fail)
  if (program.kind === 'elementwise' && program.staging !== undefined) checkStaging(program.staging, program, axes, fail)
  if (program.interval !== undefined) checkInterval(program.interval, mapped, fail)
}

/** Checks that a tile lies over an axis of the kernel, and that the pass reads the staged loads. */
function checkStaging(
  { axis, loads }: Staging,
  { steps, interval, pieces }: ElementwiseProgram,
  axes: readonly RowAxis[],
  fail: Fail,
): void {
  if (!axes.includes(axis)) fail(`tiles lie over ${axis.index}, which is none of its axes`)
  if (interval !== undefined || pieces !== undefined) fail('tiles are of whole axes')
  if (loads.length === 0) fail('tiles hold nothing')
  for (const { vec } of loads) checkWidth(vec, 16, fail)
  const known = new Set(loads.map(({ name }) => name))
  for (const { rows, statements } of passesOf(steps)) {
    for (const { name } of rows) known.add(name)
    for (const value of [...rows.flatMap((row) => (row.kind === 'computed' ? [row.value] : [])), ...passValues({ statements })])
      visit(value, (node) => {
        if (node.kind === 'element' && !known.has(node.row)) fail(`${node.row} is neither loaded nor staged`)
      })
  }
}

/** Checks that launches read inputs of the op and results of earlier launches, and that the last stores the outputs of the op. */
function checkSplit({ whole, before }: Split, last: Instance, fail: Fail): void {
  const known = new Set(whole.kernel.tensors.flatMap(({ name, access }) => (access === 'in' ? [name] : [])))
  for (const { kernel } of [...before.map(({ instance }) => instance), last])
    for (const { name, access } of kernel.tensors) {
      if (access === 'in' && !known.has(name)) fail(`${kernel.name} reads ${name}, which no launch in front leaves`)
      if (access === 'out' && known.has(name)) fail(`${kernel.name} writes ${name}, which it is given`)
      known.add(name)
    }
  for (const { name } of whole.kernel.tensors) if (!known.has(name)) fail(`no launch stores ${name}`)
}

/** Checks that the launch for dimensions that are numbers takes the arguments of the op, and these dimensions as numbers. */
function checkFixed({ mapped, dims, whole: rows }: FixedSizes, whole: Instance, pass: string, fail: Fail): void {
  verifyMapped(mapped, pass)
  const { kernel, dims: fixed } = mapped.instance
  const names = ({ tensors }: Kernel): string => tensors.map(({ name, access }) => `${access} ${name}`).join(', ')
  if (names(kernel) !== names(whole.kernel)) fail(`${kernel.name} takes ${names(kernel)}`)
  if (givenDims(kernel).join() !== whole.kernel.dims.join())
    fail(`${kernel.name} takes dimensions ${givenDims(kernel).join(', ')}`)
  for (const [dim, extent] of Object.entries(dims))
    if (fixed[dim] !== extent || !whole.kernel.dims.includes(dim)) fail(`${kernel.name} does not take ${dim} as ${extent}`)
  if (rows !== undefined && (rows.width !== mapped.vec || !whole.kernel.dims.includes(rows.dim)))
    fail(`${kernel.name} has no whole chunks of ${rows.width} along ${rows.dim}`)
}

/** Checks that one launch in place of several is of rows, and that it takes the arguments of the op. */
function checkInRows({ mapped, length, kept, groups }: InRows, whole: Instance, pass: string, fail: Fail): void {
  verifyMapped(mapped, pass)
  const { kernel } = mapped.instance
  const names = ({ tensors }: Kernel): string => tensors.map(({ name, access }) => `${access} ${name}`).join(', ')
  if (names(kernel) !== names(whole.kernel)) fail(`${kernel.name} takes ${names(kernel)}`)
  if (givenDims(kernel).join() !== whole.kernel.dims.join())
    fail(`${kernel.name} takes dimensions ${givenDims(kernel).join(', ')}`)
  if (!isHostExpr(length)) fail('only the device knows how long a group is')
  if (mapped.program.kind === 'columns') return
  if (mapped.program.kind !== 'rows') fail('groups are rows of no row program')
  if (groups === undefined) {
    if (!Number.isInteger(kept) || kept < 1) fail(`a block computes rows of up to ${kept} elements`)
    return
  }
  const longest = mapped.program.kind === 'rows' ? mapped.program.variants.map(({ limit }) => limit.length ?? 0) : []
  if (!Number.isInteger(kept) || kept > Math.max(0, ...longest)) fail(`no variant keeps groups of ${kept} elements`)
}

/** Checks that the launch over all elements takes the arguments of the op, and has their number as the length of its only row. */
function checkInRow({ mapped, length, width, tile, extents }: InRow, whole: Instance, pass: string, fail: Fail): void {
  verifyMapped(mapped, pass)
  const { kernel } = mapped.instance
  const names = ({ tensors }: Kernel): string => tensors.map(({ name, access }) => `${access} ${name}`).join(', ')
  if (names(kernel) !== names(whole.kernel)) fail(`${kernel.name} takes ${names(kernel)}`)
  if (givenDims(kernel).join() !== givenDims(whole.kernel).join())
    fail(`${kernel.name} takes dimensions ${givenDims(kernel).join(', ')}`)
  if (mapped.program.kind !== 'elementwise' || mapped.axes.length > 0) fail(`${kernel.name} has more than one row`)
  if (width < 2 || ![length, ...extents, ...(tile === undefined ? [] : [tile.rows])].every(isHostExpr))
    fail('only the device knows how long a row is')
}

/** Checks that chunks are whole packs, and that every walk reduces or stores a value. What walks read is checked once they are loops. */
function checkDivided(program: DividedProgram, vec: number, fail: Fail): void {
  if (program.kind === 'columns') {
    const { parts, each } = program
    if (vec < 4) fail(`chunks of ${vec} columns do not fill packs of results`)
    if (!Number.isInteger(Math.log2(parts)) || parts > 8) fail(`rows are divided into ${parts} parts`)
    if (!Number.isInteger(Math.log2(each)) || each < 1 || parts * each > 8) fail(`${each} chunks of each part are loaded at once`)
  }
  const passes = dividedPassesOf(program)
  const isStored = program.sequence.some(({ kind }) => kind === 'stores')
  if (passes.length === 0 && !isStored) fail('a program that divides iterations neither reduces nor stores rows')
  for (const { loops, reductions } of passes) {
    if (loops.length === 0 || reductions.length === 0) fail('a walk reduces nothing')
    for (const { index, length } of loops) if (!isHostExpr(length)) fail(`only a row knows how far ${index} runs`)
  }
  for (const step of program.sequence)
    if (step.kind === 'stores' && step.stores.length === 0) fail('a walk that stores rows stores nothing')
}

/** Steps for any chunk, and steps for a chunk that lies in one piece. */
const walksOf = ({ steps, pieces }: ElementwiseProgram): (readonly Step[])[] => [
  steps,
  ...(pieces === undefined ? [] : [pieces.steps]),
]

function checkElementwise(program: ElementwiseProgram, vec: number, fail: Fail): void {
  for (const steps of walksOf(program)) {
    const passes = passesOf(steps)
    if (passes.length !== 1 || steps.at(-1)?.kind !== 'pass') fail(`an elementwise program has ${passes.length} passes`)
    if (steps.some(({ kind }) => kind !== 'let' && kind !== 'pass')) fail('an elementwise program stores outside its pass')
    if (passes.some(({ rows }) => rows.some(({ keep, kind }) => keep || kind === 'scanned')))
      fail('an elementwise program keeps rows')
  }
  if (program.pieces?.bounds.length === 0 && program.pieces.when === undefined)
    fail('an elementwise program has pieces that end nowhere')
  const { threads, blocks = 1 } = program
  if (!Number.isInteger(blocks) || blocks < 1 || blocks * threads > 2048) fail(`a multiprocessor has room for ${blocks} blocks`)
  for (const each of [{ vec, threads }, ...(program.tuned ?? [])]) {
    checkWidth(each.vec, vec, fail)
    if (each.threads % warp !== 0 || each.threads < warp || each.threads > maxThreads) fail(`a block has ${each.threads} threads`)
  }
}

/** Checks that bounds are known before threads run along the axis, and that neighbouring threads do not run along it. */
function checkInterval({ axis, bounds, most }: Interval, { axes, across }: MappedKernel, fail: Fail): void {
  if (!axes.includes(axis) || axis === across) fail(`threads cannot go over an interval of ${axis.index}`)
  if (bounds.every(({ kind }) => kind === 'if')) fail(`an interval of ${axis.index} has no bound`)
  const known = new Set(axes.filter((each) => each !== axis).map(({ index }) => index))
  for (const bound of bounds)
    for (const value of bound.kind === 'if' ? [bound.part] : bound.place.map((each) => each.value))
      for (const name of freeNames(value))
        if (!known.has(name)) fail(`an interval of ${axis.index} is bounded by ${name}, which is not known before it`)
  for (const { value } of most.flat())
    if (!isHostExpr(value)) fail(`only the device knows how long an interval of ${axis.index} may be`)
}

const passesOf = (steps: readonly Step[]): Pass[] => steps.flatMap((step) => (step.kind === 'pass' ? [step.pass] : []))

/** Runs of consecutive elements that a pass moves in chunks. */
const runsOf = (pass: Pass): (readonly [what: string, run: number])[] => [
  ...pass.rows.flatMap((row) => (row.kind === 'loaded' ? [[row.name, row.run] as const] : [])),
  ...statementsOf(pass, 'loopStore').flatMap(({ tensor, run }) => (run === undefined ? [] : [[tensor, run] as const])),
]

function checkWidth(vec: number, most: number, fail: Fail): void {
  if (!Number.isInteger(Math.log2(vec)) || vec < 1 || vec > most)
    fail(`elements per chunk: expected a power of two up to ${most}, got ${vec}`)
}

function checkRows({ kept, reread, variants }: RowProgram, { vec }: MappedKernel, fail: Fail): void {
  if (passesOf(reread).some(({ rows }) => rows.some(({ keep }) => keep))) fail('rows are kept where every pass reads them again')
  const names = variants.map(({ name }) => name)
  if (new Set(names).size !== names.length) fail(`two variants have one name: ${names.join(', ')}`)
  for (const variant of variants) {
    checkWidth(variant.vec ?? vec, vec, fail)
    if (!isLegal(variant.team, kept)) fail(`variant ${variant.name} has a team that cannot compute the rows`)
    if (!hasMemory(variant, kept, variant.vec ?? vec)) fail(`variant ${variant.name} has no memory for rows that are kept whole`)
    const problem = variantProblem(variant, variant.vec ?? vec)
    if (problem !== undefined) fail(`variant ${variant.name} ${problem}`)
  }
  const { limit } = variants.at(-1) ?? fail('there is no variant')
  if ([limit.length, limit.rows, limit.whole, limit.tuned].some((bound) => bound !== undefined))
    fail('the last variant does not take every row')
}

function variantProblem({ team, chunks, limit }: Variant, vec: number): string | undefined {
  const lanes = team.kind === 'thread' ? 1 : team.lanes
  const threads = team.kind === 'thread' ? team.rowsPerBlock : team.kind === 'warp' ? lanes * team.rowsPerBlock : lanes
  if (threads % warp !== 0 || threads < warp || threads > maxThreads) return `has ${threads} threads a block`
  if (chunks === undefined) return undefined
  if (!Number.isInteger(chunks) || chunks < 1) return `keeps ${chunks} chunks`
  const holds = lanes * chunks * vec
  const longest = limit.length ?? limit.tuned?.length ?? Number.POSITIVE_INFINITY
  return longest > holds ? `holds ${holds} values and takes rows of ${longest}` : undefined
}
