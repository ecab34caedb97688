/** Loops of a mapped kernel: of each way in which threads walk over its rows. Programs inside matmuls are lowered where they are written. */
import { dtypeInfo } from '../ir/dtype.js'
import { resolveDType } from '../ir/instance.js'
import type { RowAxis } from '../ir/kernel.js'
import { extentOf } from '../ir/row_axis.js'
import { multiplesOf } from '../schedule/access/multiples.js'
import type { Staging } from '../schedule/access/staged_loads.js'
import { extentIn, intervalIn, type MappedKernel, onlyPass } from '../schedule/mapped.js'
import type { Loop as Counted } from '../schedule/normalise/normal.js'
import { type Digit, eachLoop, type Loop, type Version, type Walk } from './ir.js'
import type { Division } from './lower_work.js'
import { countsPlaces } from './passes/count_places.js'
import { type Divided, loopPasses, loopsOf } from './pipeline.js'
import type { Frame } from './state.js'

/** Frame of a kernel's rows. */
export function frameOf(mapped: MappedKernel, walk: Walk): Frame {
  const { instance, program } = mapped
  const isWhole = program.kind === 'elementwise' && program.staging === undefined && program.pieces === undefined
  return {
    walk,
    widths: widthsOf(mapped),
    mayBeEmpty: false,
    tensors: instance.kernel.tensors,
    fixed: instance.dims,
    bytes: new Map(
      instance.kernel.tensors.map(({ name, dtype }) => [name, dtypeInfo[resolveDType(dtype, instance.types)].bytes]),
    ),
    multiples: multiplesOf(instance.kernel),
    isWhole,
  }
}

/** Elements per chunk: one width, or those of all variants if kernels take the width as an argument. */
export function widthsOf({ generic, vec, program }: Pick<MappedKernel, 'generic' | 'vec' | 'program'>): readonly number[] {
  // The chunks of tiles are a quarter as wide if rows are not aligned (native/device/stage.cuh).
  if (program.kind === 'elementwise' && program.staging !== undefined) return [vec, Math.max(1, vec / 4)]
  if (generic !== true) return [vec]
  const tuned = program.kind === 'rows' ? program.variants : program.kind === 'elementwise' ? (program.tuned ?? []) : []
  return [...new Set([vec, ...tuned.map((variant) => variant.vec ?? vec)])]
}

/** Programs of a kernel by the ways in which threads walk over its rows, as far as variants use them, with the division of its work. */
export function walksOf(mapped: MappedKernel): readonly (readonly [Walk, Divided])[] {
  const { program } = mapped
  const divided = <W extends Walk>(walk: W, of: Divided['program']): readonly [W, Divided] => [
    walk,
    { kind: 'divided', program: of, division: divisionOf(mapped) },
  ]
  if (program.kind === 'elementwise') return [divided('single', program.steps)]
  if (program.kind === 'columns') return [divided('columns', program)]
  if (program.kind === 'totals') return [divided('parts', program)]
  const kept = program.variants.some(({ chunks }) => chunks !== undefined)
  const reread = program.variants.some(({ chunks }) => chunks === undefined)
  return [...(kept ? [divided('kept', program.kept)] : []), ...(reread ? [divided('reread', program.reread)] : [])]
}

function divisionOf(mapped: MappedKernel): Division {
  const { program, axes, across } = mapped
  const interval = intervalIn(mapped)
  const digitsOf = (all: readonly RowAxis[]): readonly Digit[] =>
    all.map((axis) => (interval?.axis === axis ? { of: 'slots', interval } : { of: 'axis', axis }))
  switch (program.kind) {
    case 'elementwise': {
      const { index, length } = onlyPass(program).loop
      if (program.staging !== undefined) return tiledDivision(mapped, program.staging, { index, length })
      const digits = digitsOf(axes.filter((axis) => axis !== across))
      const inner = across === undefined ? [] : digitsOf([across])
      return {
        owner: 'thread',
        digits: [...digits, { of: 'chunks', index, length }, ...inner],
        ...(mapped.generic === true ? {} : { threads: program.threads }),
        ...(program.pieces === undefined ? {} : { pieces: program.pieces }),
      }
    }
    case 'rows':
      return { owner: 'team', digits: digitsOf(axes) }
    case 'columns':
      return {
        owner: 'cluster',
        digits: [...digitsOf(axes), { of: 'chunks', index: program.column.index, length: program.length }],
      }
    case 'totals':
      return { owner: 'grid', digits: digitsOf(axes) }
  }
}

/** A block has a tile, of the axis along which loads are contiguous and of the loop. */
function tiledDivision(mapped: MappedKernel, { axis, loads, isRun }: Staging, columns: Counted): Division {
  const others = mapped.axes.filter((each) => each !== axis)
  const rows = { index: axis.index, length: extentOf(axis, extentIn(mapped)) }
  return {
    owner: 'block',
    digits: [
      ...others.map((each) => ({ of: 'axis', axis: each }) as const),
      { of: 'tiles', side: 'rows', ...rows },
      { of: 'tiles', side: 'columns', ...columns },
    ],
    tiles: { loads, rows, columns, isRun },
  }
}

/** Loops of a kernel for one way of walking over its rows. */
export const loopsFor = (mapped: MappedKernel, walk: Walk): readonly Loop[] =>
  walksOf(mapped).flatMap(([each, given]) => (each === walk ? loopsOf(given, frameOf(mapped, walk)) : []))

/** True if a kernel requests vectors before it waits. */
export const requestsVectors = (mapped: MappedKernel): boolean =>
  mapped.program.kind === 'rows' &&
  walksOf(mapped).some(([walk, given]) => loopsOf(given, frameOf(mapped, walk)).some(({ kind }) => kind === 'request'))

/** True if threads of a block compute values of groups of columns for each other. */
export function sharesGroups(mapped: MappedKernel): boolean {
  let found = false
  if (mapped.program.kind !== 'columns') return false
  eachLoop(loopsFor(mapped, 'columns'), ({ kind }) => {
    found ||= kind === 'groups'
  })
  return found
}

/** The version of a kernel's rows, if elements of a chunk lie apart in those that are not whole. */
export function apartVersion(mapped: MappedKernel, walk: Walk): Version | undefined {
  let found: Version | undefined
  eachLoop(loopsFor(mapped, walk), (loop) => {
    if (loop.kind === 'version' && loop.apart === true) found = loop
  })
  return found
}

/** Forms of a thread's columns in rows that are not whole: whether they lie apart, and in pairs of an even number. */
export function apartColumns(mapped: MappedKernel): { readonly apart: boolean; readonly pairs: boolean } {
  let [apart, pairs] = [false, false]
  eachLoop(loopsFor(mapped, 'columns'), (loop) => {
    if (loop.kind === 'version') pairs ||= loop.pairs === true
    if (loop.kind === 'for' && loop.owner === 'lane') apart ||= loop.apart === true
  })
  return { apart, pairs }
}

/** That version, if the launcher chooses it: kernels of several widths test it for themselves. */
export const launchedVersion = (mapped: MappedKernel, walk: Walk): Version | undefined =>
  mapped.generic === true ? undefined : apartVersion(mapped, walk)

/** True if a kernel has chunks whose elements lie apart in rows that are not whole. */
export const liesApart = (mapped: MappedKernel): boolean =>
  walksOf(mapped).some(([walk]) => apartVersion(mapped, walk) !== undefined)

/** True if elements count their places. */
export const hasCounts = (mapped: MappedKernel): boolean =>
  mapped.program.kind === 'elementwise' && countsPlaces(loopsFor(mapped, 'single'))

/** Calls `see` with the loops of a kernel after each pass. */
export function eachPass(mapped: MappedKernel, see: (walk: Walk, pass: string, loops: readonly Loop[]) => void): void {
  for (const [walk, given] of walksOf(mapped))
    loopsOf(given, frameOf(mapped, walk), loopPasses, (pass, loops) => see(walk, pass, loops))
}
