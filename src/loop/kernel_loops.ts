/** Loops of a mapped kernel: of each way in which lanes walk over its rows. Columns and totals, and programs inside matmuls, are no loops of rows. */
import type { MappedKernel } from '../schedule/mapped.js'
import type { Step } from '../schedule/passes.js'
import type { Loop, Walk } from './ir.js'
import { loopPasses, loopsOf } from './pipeline.js'
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

/** Steps of a kernel by the ways in which lanes walk over its rows, as far as variants use them. */
export function walksOf({ program }: Pick<MappedKernel, 'program'>): readonly (readonly [Walk, readonly Step[]])[] {
  if (program.kind === 'elementwise') return [['single', program.steps]]
  if (program.kind !== 'rows') return []
  const kept = program.variants.some(({ chunks }) => chunks !== undefined)
  const reread = program.variants.some(({ chunks }) => chunks === undefined)
  return [...(kept ? [['kept', program.kept] as const] : []), ...(reread ? [['reread', program.reread] as const] : [])]
}

/** Calls `see` with the loops of a kernel after each pass. */
export function eachPass(mapped: MappedKernel, see: (walk: Walk, pass: string, loops: readonly Loop[]) => void): void {
  for (const [walk, steps] of walksOf(mapped))
    loopsOf(steps, frameOf(mapped, walk), loopPasses, (pass, loops) => see(walk, pass, loops))
}
