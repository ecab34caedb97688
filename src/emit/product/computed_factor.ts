/**
 * An operand that is computed while it is loaded, as CUDA source. Its row program runs on each chunk of a row. The program's reductions over the
 * row are computed once, before the row's first chunk.
 */
import type { Kernel, StmtOf } from '../../ir/kernel.js'
import type { MatmulFactor, MatmulKernel } from '../../ir/product.js'
import { freeNames, visit } from '../../ir/walk.js'
import { chunkAccesses } from '../../loop/access.js'
import type { Access } from '../../loop/ir.js'
import { mapPart } from '../../schedule/map.js'
import { rowExprs } from '../../schedule/normalise/normal.js'
import { type Pass, passValues, type Step, statementsOf } from '../../schedule/normalise/passes.js'
import { bodyWriter, lines } from '../kernels/frame.js'
import { writePass, writeSteps } from '../kernels/steps.js'
import type { TemplateInstance } from '../kernels/template.js'
import type { PassContext } from '../print/context.js'
import type { Scope } from '../print/expression.js'
import type { Names } from '../print/names.js'
import { userMonoidName } from '../print/user_monoids.js'
import { anchoredRowOf } from './anchored_row.js'
import { type FactorText, isLong, ownAxis, type Place, placeTexts } from './factor_frame.js'
import { placed, renamed, vec } from './frame.js'
import { rowScaleOf } from './row_scale.js'
import { unscaledText } from './unscaled_factor.js'

/** Source of an operand with a prologue, in the storage types of an instance. */
export function computedFactor(
  kernel: MatmulKernel,
  { prologue, tensor }: MatmulFactor,
  { which, frame }: Place,
  scope: Scope,
  types: TemplateInstance['types'],
): FactorText {
  if (prologue === undefined) throw new Error(`internal: ${tensor} is not computed`)
  const { before, last } = stepsOf(prologue, { kernel, tensor, types })
  const texts = placeTexts(prologue, kernel, ownAxis(kernel, which), frame, scope.names)
  const tensors = prologue.tensors
  const kept: Names = { ...scope.names, tensor: (name) => (name === tensor ? frame.kept : scope.names.tensor(name)) }
  const rows = knownOf(before).filter(({ name }) => usedBy(last.pass).has(name))

  const first = bodyWriter(2)
  const context = (writer: PassContext['writer'], names: Names, walk: PassContext['walk']): PassContext => ({
    ...{ ...scope, tensors, elements: new Map(), shared: new Map(), names, writer, walk },
    ...{ ownName: (own) => userMonoidName(own, prologue), widths: [vec] },
  })
  const rowNames = placed(kept, texts, scope.used)
  const rowContext = context(first, rowNames, 'reread')
  writeSteps(before, rowContext)
  first.writeLine(`return {${rows.map(({ name }) => rowNames.value(name)).join(', ')}};`)

  const chunk = bodyWriter(2)
  const known = rows.map(({ name }) => [name, `${frame.known}.${scope.names.value(name)}`] as const)
  const inChunk = renamed(rowNames, new Map(known))
  const { loop } = last.pass
  const long = tensors.filter((param) => loop.length.kind === 'dim' && isLong(param, loop.length.name))
  const covers = ({ tensor: of, run }: Pick<Access, 'tensor' | 'run'>): boolean =>
    run === Number.POSITIVE_INFINITY && long.some(({ name }) => name === of && name !== tensor)
  const names: Names = { ...inChunk, first: (name) => (name === last.pass.loop.index ? frame.along : inChunk.first(name)) }
  chunk.writeLine(`const heddle::KeptChunk<VEC> ${frame.kept}{${frame.values}};`)
  writePass(last.pass, context(chunk, names, 'single'), covers)
  const accesses = chunkAccesses(last.pass)
  // Only rows of the left operand are processed whole by one block.
  const scaled = which === 0 ? scaleOf(before, last.pass) : undefined
  const param = tensors.find(({ name }) => name === tensor)
  if (param === undefined) throw new Error(`internal: ${kernel.name} has no tensor ${tensor}`)
  const shared = long.filter(({ name, dims }) => dims.length === 1 && accesses.some(({ tensor: of }) => of === name))
  return {
    read: [...new Set(accesses.filter(covers).map(({ tensor: of }) => kept.tensor(of)))],
    rows: rows.map(({ name, type }) => ({ name: scope.names.value(name), type })),
    first: lines(first),
    chunk: lines(chunk),
    unscaled:
      scaled === undefined
        ? ''
        : unscaledText({
            ...{ scaled, last: last.pass, frame, param, names: rowNames },
            context: (writer, own) => context(writer, own, 'single'),
            whole: covers,
            shared: shared.map(({ name }) => kept.tensor(name)),
          }),
  }
}

/** Tensors of the parts that all rows of the left operand share, which main loops may read before they wait; none without such parts. */
export function commonTensors(kernel: MatmulKernel, types: TemplateInstance['types']): readonly string[] {
  const { prologue, tensor } = kernel.a
  if (prologue === undefined) return []
  const { before, last } = stepsOf(prologue, { kernel, tensor, types })
  return scaleOf(before, last.pass)?.anchored?.tensors ?? []
}

const scaleOf = (before: readonly Step[], last: Pass) => rowScaleOf(before, last) ?? anchoredRowOf(before, last)

/** Steps of a row program before its last pass, and that pass, which makes the elements of a chunk. */
function stepsOf(
  prologue: Kernel,
  {
    kernel,
    tensor,
    types,
  }: { readonly kernel: MatmulKernel; readonly tensor: string; readonly types: TemplateInstance['types'] },
): { readonly before: readonly Step[]; readonly last: Extract<Step, { kind: 'pass' }> } {
  const { program, across } = mapPart({ kernel: prologue, types, dims: {} })
  if (program.kind === 'columns' || program.kind === 'totals')
    throw new Error(`internal: ${kernel.name} computes ${tensor} across rows`)
  const steps = program.kind === 'elementwise' ? program.steps : program.reread
  const last = steps.at(-1)
  if (across !== undefined || last?.kind !== 'pass' || statementsOf(last.pass, 'loopStore').length !== 1)
    throw new Error(`internal: ${kernel.name} computes ${tensor} in another order than it multiplies it`)
  return { before: steps.slice(0, -1), last }
}

type Known = Pick<StmtOf<'let'>, 'name' | 'type'>

/** Scalars that steps compute. */
const knownOf = (steps: readonly Step[]): readonly Known[] =>
  steps.flatMap((step): readonly Known[] => {
    if (step.kind === 'let') return [step]
    return step.kind === 'pass' ? statementsOf(step.pass, 'reduce') : []
  })

/** Names that a pass reads. */
function usedBy(pass: Pass): ReadonlySet<string> {
  const places = pass.rows.flatMap((row) =>
    row.kind === 'loaded' ? [row.load, ...(row.guard === undefined ? [] : [row.guard])] : rowExprs(row),
  )
  const used = new Set<string>()
  for (const expr of [...places, ...passValues(pass), pass.loop.length]) {
    visit(expr, (node) => {
      for (const name of freeNames(node)) used.add(name)
    })
  }
  return used
}
