/**
 * Shared parts of all kernel functions of a mapped kernel: writers, names, the indices of a row, and the source of a step that runs once per row.
 */
import CodeBlockWriter from 'code-block-writer'
import { getOwn } from '../../ir/get_own.js'
import type { RowAxis } from '../../ir/kernel.js'
import { dimsOf, isMerged } from '../../ir/row_axis.js'
import type { Walk } from '../../loop/ir.js'
import { widthsOf } from '../../loop/kernel_loops.js'
import { multiplesOf } from '../../schedule/access/multiples.js'
import { type ElementwiseProgram, intervalIn, type MappedKernel } from '../../schedule/mapped.js'
import type { Pass } from '../../schedule/normalise/passes.js'
import type { PassContext } from '../print/context.js'
import type { Scope } from '../print/expression.js'
import type { Names } from '../print/names.js'
import { userMonoidName } from '../print/user_monoids.js'

/** A writer for the body of a function. */
export function bodyWriter(level = 1): CodeBlockWriter {
  const writer = new CodeBlockWriter({ indentNumberOfSpaces: 2, newLine: '\n', useTabs: false })
  writer.setIndentationLevel(level)
  return writer
}

/** Contents of a writer, ending with a line end. */
export const lines = (writer: CodeBlockWriter): string => (writer.getLength() === 0 ? '' : `${writer.toString().trimEnd()}\n`)

/** Writes lines that have their indentation. */
export function insert(indented: string, writer: CodeBlockWriter): void {
  const level = writer.getIndentationLevel()
  writer.setIndentationLevel(0)
  writer.write(indented)
  writer.setIndentationLevel(level)
}

/** Names of the kernel functions in a file. */
export const functionName = (mapped: MappedKernel, walk: Walk | 'tiled'): string =>
  `${mapped.instance.kernel.name}_${walk === 'single' ? 'elementwise' : walk}`

/** A kernel function, without its parameters. */
export interface Body {
  readonly comment: string
  readonly template: string
  /** Threads per block, and one block per multiprocessor: without it ptxas may spill a register or two to fit another block. */
  readonly bounds: string
  /** Leading parameters, if they are not those of the program's kind. */
  readonly first?: readonly string[]
  readonly name: string
  readonly body: string
}

/** The one pass of an elementwise program. */
export function onlyPass(program: ElementwiseProgram): Pass {
  const pass = program.steps.flatMap((step) => (step.kind === 'pass' ? [step.pass] : []))[0]
  if (pass === undefined) throw new Error('internal: an elementwise program has one pass')
  return pass
}

/** Context for the steps of a function, with a writer of its own. */
export function newContext(mapped: MappedKernel, walk: Walk, names: Names, used: Scope['used']): PassContext {
  const writer = bodyWriter()
  const { kernel, dims: fixed } = mapped.instance
  return {
    writer,
    walk,
    names,
    used,
    tensors: kernel.tensors,
    fixed,
    elements: new Map(),
    shared: new Map(),
    ownName: (own) => userMonoidName(own, kernel),
    widths: widthsOf(mapped),
    multiples: multiplesOf(kernel),
  }
}

/** Splits `position` into the row's indices, innermost first. */
export function writeIndices(mapped: MappedKernel, writer: CodeBlockWriter, names: Names, used: Scope['used']): void {
  const inward = mapped.axes.filter((axis) => axis !== mapped.across).reverse()
  inward.forEach((axis, i) => {
    if (i < inward.length - 1) writePeeled(axis, mapped, writer, names, used)
    else if (axis === intervalIn(mapped)?.axis) writer.writeLine('const int slot = static_cast<int>(position);')
    else if (used.indices.has(axis.index)) writer.writeLine(`const int ${names.value(axis.index)} = static_cast<int>(position);`)
  })
}

/** Splits one index off `position`. */
export function writePeeled(
  axis: RowAxis,
  mapped: MappedKernel,
  writer: CodeBlockWriter,
  names: Names,
  used: Scope['used'],
): void {
  if (axis === intervalIn(mapped)?.axis) {
    writer.writeLine('const int slot = heddle::peel(position, slots);')
    return
  }
  const { index } = axis
  const { instance } = mapped
  const extents = dimsOf(axis).map((dim) => {
    const fixed = getOwn(instance.dims, dim)
    if (fixed === undefined) used.dims.add(dim)
    return fixed ?? names.dim(dim)
  })
  const declare = used.indices.has(index) ? `const int ${names.value(index)} = ` : ''
  writer.writeLine(`${declare}heddle::peel(position, ${extents.join(isMerged(axis) ? ' * ' : ' + ')});`)
}
