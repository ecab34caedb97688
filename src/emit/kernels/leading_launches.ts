/**
 * Launches in front of a kernel as CUDA source. Each has a namespace of its own in the file, since its vector width and its names are its
 * own. The launcher of the op runs them in order and gives each the buffers and the scratch tensors that it reads and writes.
 */
import { dim as dimVar } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { Instance } from '../../ir/instance.js'
import {
  type ColumnLaunches,
  extentIn,
  type FixedSizes,
  groupExtents,
  type InRow,
  type InRows,
  isProduct,
  type MappedKernel,
  type Split,
} from '../../schedule/mapped.js'
import { productText, toCount } from '../launch/conditions.js'
import { launcherBody } from '../launch/launcher.js'
import { operandText, type Scope, wideText } from '../print/expression.js'
import { createNames } from '../print/names.js'
import { render } from '../templates.js'
import { hasOwnWidths } from './headers.js'
import { kernelTexts } from './kernel.js'
import { type Sequence, splitLauncher } from './split_launcher.js'

/** Namespaces of the launches in front, by their order; that of the last kernel's launcher, which has its widths as arguments, too. */
const partName = (at: number): string => `part${at + 1}`

/** Namespace of the launch that computes groups as rows. */
const rowsName = 'in_rows'

/** Namespace of the launch over all elements as one row. */
const rowName = 'in_one_row'

/** Namespaces of the launches for dimensions that are numbers, and of those in spans. */
const fixedName = ({ whole }: FixedSizes): string => (whole === undefined ? 'fixed_sizes' : 'in_spans')

/** Namespaces of launches over the columns of groups, by their order. */
const columnsName = (at: number): string => `columns${at + 1}`

/** Kernels and launchers of the launches in front, and of those in place of all. */
export const partTexts = ({ split }: Pick<MappedKernel, 'split'>): string =>
  [
    ...(split?.fixed ?? []).map((each) => [each.mapped, fixedName(each)] as const),
    ...(split?.inRows === undefined ? [] : [[split.inRows.mapped, rowsName] as const]),
    ...(split?.inRow === undefined ? [] : [[split.inRow.mapped, rowName] as const]),
    ...(split?.columns?.launches ?? []).map((part, at) => [part, columnsName(at)] as const),
    ...(split?.before ?? []).map((part, at) => [part, partName(at)] as const),
  ]
    .map(([part, name]) => {
      const { text, parameters } = kernelTexts(part)
      return `${render('part', { name, vec: hasOwnWidths(part) ? '' : part.vec, kernels: text, body: launcherBody(part, parameters) })}\n`
    })
    .join('')

/** The body of the op's launcher. @param last the function that launches the last kernel */
export function splitBody(mapped: MappedKernel, { whole, before, inRows, inRow, fixed, columns }: Split, last: string): string {
  const { kernel, dims } = whole
  const names = createNames({ ...mapped, instance: whole }, 'split elements')
  const used: Scope['used'] = { dims: new Set(), attrs: new Set(), indices: new Set() }
  const scope: Scope = { names, used, tensors: kernel.tensors, fixed: dims, elements: new Map() }
  const rows = [
    ...(fixed ?? []).map((each) => fixedLine(each, scope)),
    ...(inRows === undefined ? [] : rowsLines(inRows, { instance: whole }, scope)),
    ...(inRow === undefined ? [] : rowLines(inRow, scope)),
  ]
  const parts = [...before.map((part, at) => [part, `${partName(at)}::run`] as const), [mapped, last] as const]
  const ofColumns = columns?.launches.map((part, at) => [part, `${columnsName(at)}::run`] as const)
  return splitLauncher({
    ...{ key: mapped.key, kernel, names, used: used.dims, before: rows },
    sequence: sequenceOf(parts, whole, scope),
    ...(columns === undefined || ofColumns === undefined
      ? {}
      : {
          instead: {
            comment: 'Each thread combines the columns of its groups.',
            when: columnsText(columns, scope),
            sequence: sequenceOf(ofColumns, whole, scope),
          },
        }),
  })
}

/** Condition of launches over the columns of groups. */
function columnsText({ length, most, width, extents }: ColumnLaunches, scope: Scope): string {
  const elements = extents.map((extent) => toCount(wideText(extent, scope, toCount))).join(' * ')
  return `heddle::suit_columns(${operandText(length, scope)}, ${most}, ${width}, ${elements})`
}

/** Launches in order, with the scratch tensors that all but the last leave. */
function sequenceOf(parts: readonly (readonly [MappedKernel, string])[], whole: Instance, scope: Scope): Sequence {
  const before = parts.slice(0, -1).map(([{ instance }]) => instance.kernel)
  const outputs = new Set(whole.kernel.tensors.map(({ name }) => name))
  const scratch = before.flatMap(({ tensors }) => tensors.filter(({ name, access }) => access === 'out' && !outputs.has(name)))
  const extentOf = extentIn({ instance: whole })
  // An axis of a launch in front may be several of the op.
  const computed = new Map(before.flatMap((kernel) => Object.entries(kernel.computed ?? {})))
  const extentText = (dim: string): string => {
    const several = computed.get(dim)
    return several === undefined ? `heddle::Count(${operandText(extentOf(dim), scope)})` : wideText(several, scope, toCount)
  }
  const sizes = scratch.map(({ dims }) => (dims.length === 0 ? 'heddle::Count(1)' : dims.map(extentText).join(' * ')))
  return { scratch, sizes, runs: parts.map(([{ instance }, run]) => [run, instance.kernel.tensors]) }
}

/** Source that takes the launch for dimensions that are numbers, or whose rows are whole chunks. */
function fixedLine(fixed: FixedSizes, scope: Scope): string {
  const { dims, whole } = fixed
  const tests = Object.entries(dims).map(([dim, extent]) => `${operandText(dimVar(dim), scope)} == ${extent}`)
  if (whole !== undefined) tests.push(`${operandText(dimVar(whole.dim), scope)} % ${whole.width} == 0`)
  return `if (${tests.join(' && ')}) return ${fixedName(fixed)}::run(launch, error);`
}

/** Source that takes the launch over all elements as one row, where it can count them. */
function rowLines({ length, width, tile, extents }: InRow, scope: Scope): readonly string[] {
  const columns = wideText(length, scope)
  const suits =
    tile === undefined
      ? `${columns} % ${width} != 0`
      : `${columns} <= ${tile.columns} && ${columns} * ${wideText(tile.rows, scope)} <= ${tile.places}`
  const factor = (extent: Expr): string =>
    isProduct(extent) ? `(${wideText(extent, scope, toCount)})` : operandText(extent, scope)
  const elements = productText(extents.map(factor))
  return [
    tile === undefined
      ? '// The chunks of one row of all elements are aligned where those of many rows are not.'
      : '// Planes this small would leave most of a tile empty.',
    `if (${suits} && (${elements}).value <= INT32_MAX) return ${rowName}::run(launch, error);`,
  ]
}

/** Source that computes groups as rows where their sizes suit one launch. */
function rowsLines(inRows: InRows, whole: Pick<MappedKernel, 'instance'>, scope: Scope): readonly string[] {
  const { mapped, length, kept, groups, many } = inRows
  const extents = groupExtents(inRows, extentIn(whole)).map((each) => operandText(each, scope))
  const elements = wideText(length, scope, toCount)
  if (groups === undefined && many !== undefined)
    return [
      `// A block each computes rows of up to ${kept} elements, or many rows; the blocks of all rows together divide few longer ones.`,
      `if (heddle::suit_rows(${productText(extents)}, ${elements}, ${kept}, ${many})) return ${rowsName}::run(launch, error);`,
    ]
  if (groups === undefined)
    return [
      `// A block each computes rows of up to ${kept} elements; the blocks of all rows together divide longer ones.`,
      `if (heddle::suit_blocks(${elements}, ${kept})) return ${rowsName}::run(launch, error);`,
    ]
  return [
    mapped.program.kind === 'columns'
      ? `// Clusters reduce columns of up to ${kept} rows, or many columns.`
      : `// A block keeps a group of up to ${kept} elements in registers.`,
    `if (heddle::suit_rows(${productText(extents)}, ${elements}, ${kept}, ${groups})) return ${rowsName}::run(launch, error);`,
  ]
}
