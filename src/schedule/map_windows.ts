/**
 * Windows that are written out, as launches: in spans where rows are whole chunks, and otherwise in chunks or single elements, with a version for
 * those inside of the tensor. Part of the scheduler (map.ts).
 */
import type { Expr } from '../ir/expr.js'
import type { Instance } from '../ir/instance.js'
import { verifyKernel } from '../ir/verify.js'
import { mapRows, type rowPasses, type See } from './map_rows.js'
import { type ElementwiseProgram, type FixedSizes, type MappedKernel, onlyPass } from './mapped.js'
import { freshName } from './normalise/normal.js'
import { passValues } from './normalise/passes.js'
import { contains, usesIndex } from './normalise/rewrite.js'
import { takenNames } from './normalise/taken_names.js'
import { blocksOf } from './windows/blocks.js'
import type { Windows } from './windows/windows.js'

type Passes = typeof rowPasses

/** A launch for all sizes, and one in front of it for rows that it reads in spans. */
export interface MappedWindows {
  readonly made: MappedKernel
  readonly spans: readonly FixedSizes[]
}

export function mapWindows(windows: Windows, passes: Passes, see: See): MappedWindows {
  const { instance, spans, stated } = windows
  const mapped = mapSpans(spans ?? instance, passes, see, 'spans')
  if (mapped === undefined) return { made: mapElements(windows, passes, see, 'any'), spans: [] }
  const { length } = onlyPass(mapped.program).loop
  const isWhole = length.kind === 'const' && Number(length.value) % mapped.vec === 0
  if (spans === undefined || isWhole) return { made: mapped, spans: [] }
  const made = mapSpans(instance, passes, see, 'single spans') ?? mapElements(windows, passes, see, 'single')
  if (length.kind !== 'dim') return { made, spans: [] }
  return { made, spans: [{ mapped, dims: stated, whole: { dim: length.name, width: mapped.vec } }] }
}

type MappedElements = MappedKernel & { readonly program: ElementwiseProgram }

/** Farthest place beside a single element that is loaded with it. */
const farthest = 8

/** Windows whose loads along rows are all made in spans, of chunks or of single elements; undefined if they are none. */
function mapSpans(spans: Instance, passes: Passes, see: See, rows: 'spans' | 'single spans'): MappedElements | undefined {
  verifyKernel(spans.kernel, 'reading windows in spans')
  see('reading windows in spans', { kernel: spans.kernel })
  const mapped = mapRows(spans, spans, passes, see, rows)
  const { program, vec } = mapped
  if (program.kind !== 'elementwise' || (vec === 1 && rows === 'spans')) return undefined
  const { rows: read, loop, statements } = onlyPass(program)
  const shifts = read.flatMap((row) => (row.kind === 'loaded' && row.shift !== undefined ? [Math.abs(row.shift)] : []))
  const values = [...read.flatMap((row) => (row.kind === 'computed' ? [row.value] : [])), ...passValues({ statements })]
  const isAlong = (e: Expr): boolean => e.kind === 'load' && usesIndex(e, loop.index)
  const isMade = !values.some((value) => contains(value, isAlong))
  const isBeside = isMade && shifts.length > 0 && Math.max(...shifts) <= (vec === 1 ? farthest : vec)
  return isBeside ? { ...mapped, program: inBlocks(program, spans, vec) } : undefined
}

/** The program with the registers that its chunks need. */
function inBlocks(program: ElementwiseProgram, { kernel, types }: Instance, vec: number): ElementwiseProgram {
  const blocks = blocksOf({ kernel, types }, program.steps, vec)
  return blocks === 1 ? program : { ...program, blocks }
}

/** Windows in chunks, or in single elements with a version for those inside of the tensor. */
function mapElements({ instance, inside }: Windows, passes: Passes, see: See, loads: 'any' | 'single'): MappedKernel {
  const made = mapRows(instance, instance, passes, see, loads)
  const { program } = made
  if (program.kind === 'elementwise' && made.vec > 1 && program.pieces === undefined && program.staging === undefined)
    return { ...made, program: inBlocks(program, instance, made.vec) }
  if (inside === undefined || program.kind !== 'elementwise' || made.vec > 1 || program.pieces !== undefined) return made
  verifyKernel(inside.kernel, 'finding windows inside')
  const within = { ...instance, kernel: inside.kernel }
  const version = mapRows(within, within, passes, see, loads)
  if (version.program.kind !== 'elementwise' || version.vec !== made.vec || version.program.staging !== undefined) return made
  const pieces = {
    index: freshName('chunk', takenNames(instance.kernel)),
    bounds: [],
    when: inside.when,
    steps: version.program.steps,
  }
  return { ...made, program: { ...program, pieces } }
}
