/** Loops of a mapped kernel: of each way in which threads walk over its rows. Programs inside matmuls are lowered where they are written. */
import { multiplesOf } from '../schedule/access/multiples.js'
import type { MappedKernel } from '../schedule/mapped.js'
import type { Loop, Walk } from './ir.js'
import { type Lowered, loopPasses, loopsOf } from './pipeline.js'
import type { Frame } from './state.js'

/** Frame of a kernel's rows. */
export function frameOf(mapped: MappedKernel, walk: Walk): Frame {
  const { instance, program } = mapped
  const staged = program.kind === 'elementwise' ? (program.staging?.loads ?? []) : []
  const isWhole = program.kind === 'elementwise' && program.staging === undefined && program.pieces === undefined
  return {
    walk,
    widths: widthsOf(mapped),
    mayBeEmpty: false,
    tensors: instance.kernel.tensors,
    fixed: instance.dims,
    multiples: multiplesOf(instance.kernel),
    known: staged.map(({ name }) => name),
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

/** Programs of a kernel by the ways in which threads walk over its rows, as far as variants use them. */
export function walksOf({ program }: Pick<MappedKernel, 'program'>): readonly (readonly [Walk, Lowered])[] {
  if (program.kind === 'elementwise') return [['single', program.steps]]
  if (program.kind === 'columns') return [['columns', program]]
  if (program.kind === 'totals') return [['parts', program]]
  const kept = program.variants.some(({ chunks }) => chunks !== undefined)
  const reread = program.variants.some(({ chunks }) => chunks === undefined)
  return [...(kept ? [['kept', program.kept] as const] : []), ...(reread ? [['reread', program.reread] as const] : [])]
}

/** True if a kernel requests vectors before it waits. */
export const requestsVectors = (mapped: MappedKernel): boolean =>
  mapped.program.kind === 'rows' &&
  walksOf(mapped).some(([walk, given]) => loopsOf(given, frameOf(mapped, walk)).some(({ kind }) => kind === 'request'))

/** Calls `see` with the loops of a kernel after each pass. */
export function eachPass(mapped: MappedKernel, see: (walk: Walk, pass: string, loops: readonly Loop[]) => void): void {
  for (const [walk, given] of walksOf(mapped))
    loopsOf(given, frameOf(mapped, walk), loopPasses, (pass, loops) => see(walk, pass, loops))
}
