/**
 * Launches in front of a kernel as CUDA source. Each has a namespace of its own in the file, since its vector width and its names are its
 * own. The launcher of the op runs them in order and gives each the buffers and the scratch tensors that it reads and writes.
 */
import { extentIn, groupExtents, type InRows, type MappedKernel, type Split } from '../../schedule/mapped.js'
import { productText, toCount } from '../launch/conditions.js'
import { launcherBody } from '../launch/launcher.js'
import { operandText, type Scope, wideText } from '../print/expression.js'
import { createNames } from '../print/names.js'
import { render } from '../templates.js'
import { hasOwnWidths } from './headers.js'
import { kernelTexts } from './kernel.js'
import { splitLauncher } from './split_launcher.js'

/** Namespaces of the launches in front, by their order; that of the last kernel's launcher, which has its widths as arguments, too. */
const partName = (at: number): string => `part${at + 1}`

/** Namespace of the launch that computes groups as rows. */
const rowsName = 'in_rows'

/** Kernels and launchers of the launches in front, and of the launch in place of all. */
export const partTexts = ({ split }: Pick<MappedKernel, 'split'>): string =>
  [
    ...(split?.inRows === undefined ? [] : [[split.inRows.mapped, rowsName] as const]),
    ...(split?.before ?? []).map((part, at) => [part, partName(at)] as const),
  ]
    .map(([part, name]) => {
      const { text, parameters } = kernelTexts(part)
      return `${render('part', { name, vec: hasOwnWidths(part) ? '' : part.vec, kernels: text, body: launcherBody(part, parameters) })}\n`
    })
    .join('')

/** The body of the op's launcher. @param last the function that launches the last kernel */
export function splitBody(mapped: MappedKernel, { whole, before, inRows }: Split, last: string): string {
  const { kernel, dims: fixed } = whole
  const names = createNames({ ...mapped, instance: whole }, 'split elements')
  const used: Scope['used'] = { dims: new Set(), attrs: new Set(), indices: new Set() }
  const scope: Scope = { names, used, tensors: kernel.tensors, fixed, elements: new Map() }
  const outputs = new Set(kernel.tensors.map(({ name }) => name))
  const scratch = before.flatMap(({ instance }) =>
    instance.kernel.tensors.filter(({ name, access }) => access === 'out' && !outputs.has(name)),
  )
  const extent = extentIn({ instance: whole })
  const sizes = scratch.map(({ dims }) =>
    dims.length === 0 ? 'heddle::Count(1)' : dims.map((each) => `heddle::Count(${operandText(extent(each), scope)})`).join(' * '),
  )
  const rows = inRows === undefined ? [] : rowsLines(inRows, { instance: whole }, scope)
  const parts = [...before.map((part, at) => [part, `${partName(at)}::run`] as const), [mapped, last] as const]
  return splitLauncher({
    ...{ key: mapped.key, kernel, names, used: used.dims, before: rows, scratch, sizes },
    runs: parts.map(([{ instance }, run]) => [run, instance.kernel.tensors]),
  })
}

/** Source that computes groups as rows where their sizes suit one launch. */
function rowsLines(inRows: InRows, whole: Pick<MappedKernel, 'instance'>, scope: Scope): readonly string[] {
  const { mapped, length, kept, groups } = inRows
  const extents = groupExtents(inRows, extentIn(whole)).map((each) => operandText(each, scope))
  const elements = wideText(length, scope, toCount)
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
