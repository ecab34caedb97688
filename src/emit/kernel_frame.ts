/** What kernels of all programs have around their bodies: parameters, names, writers, and the indices of their axes. */
import CodeBlockWriter from 'code-block-writer'
import type { RowAxis, TensorParam } from '../ir/kernel.js'
import { own } from '../ir/own.js'
import type { MappedKernel } from '../schedule/mapped.js'
import type { PassContext, Walk } from './context.js'
import type { Scope } from './expression.js'
import { handleText, type Names, scalarText } from './names.js'
import { ownName } from './own_monoids.js'

/** A kernel's parameters besides the amount of work, which is the first where there is one. */
export interface Parameters {
  readonly dims: readonly string[]
  readonly attrs: readonly { readonly name: string; readonly type: 'f32' | 'i32' }[]
  readonly tensors: readonly TensorParam[]
}

/** A writer for the body of a function. */
export function bodyWriter(level = 1): CodeBlockWriter {
  const writer = new CodeBlockWriter({ indentNumberOfSpaces: 2, newLine: '\n', useTabs: false })
  writer.setIndentationLevel(level)
  return writer
}

/** Names of the kernel functions in a file. */
export const functionName = (mapped: MappedKernel, walk: Walk | 'columns' | 'parts' | 'totals'): string =>
  `${mapped.instance.kernel.name}_${walk === 'single' ? 'elementwise' : walk}`

/** What was written, ending with a line end. */
export const lines = (writer: CodeBlockWriter): string => (writer.getLength() === 0 ? '' : `${writer.toString().trimEnd()}\n`)

/** A kernel as text, without the parameters that all kernels of a file have. */
export interface Body {
  readonly comment: string
  readonly template: string
  /** Threads a block, and one block a multiprocessor: without it ptxas may spill a register or two for a block more. */
  readonly bounds: string
  /** Parameters in front of the others, where they are not those of the program's kind. */
  readonly first?: readonly string[]
  readonly name: string
  readonly body: string
}

/** The state of emission of a program at its beginning. */
export function newContext({ instance }: MappedKernel, walk: Walk, names: Names, used: Scope['used']): PassContext {
  const writer = bodyWriter()
  const { kernel, dims: fixed } = instance
  return {
    writer,
    walk,
    names,
    used,
    tensors: kernel.tensors,
    fixed,
    elements: new Map(),
    shared: new Map(),
    starts: [],
    ownName: (own) => ownName(own, kernel),
    soon: new Map(),
  }
}

/** Splits `position` into the row's indices, innermost first. */
export function writeIndices(mapped: MappedKernel, writer: CodeBlockWriter, names: Names, used: Scope['used']): void {
  const inward = mapped.axes.filter((axis) => axis !== mapped.across).reverse()
  inward.forEach((axis, i) => {
    if (i < inward.length - 1) writePeeled(axis, mapped, writer, names, used)
    else if (used.indices.has(axis.index)) writer.writeLine(`const int ${names.value(axis.index)} = static_cast<int>(position);`)
  })
}

/** Splits one index off `position`. */
export function writePeeled(
  { index, dim }: RowAxis,
  { instance }: MappedKernel,
  writer: CodeBlockWriter,
  names: Names,
  used: Scope['used'],
): void {
  const fixed = own(instance.dims, dim)
  if (fixed === undefined) used.dims.add(dim)
  const declare = used.indices.has(index) ? `const int ${names.value(index)} = ` : ''
  writer.writeLine(`${declare}heddle::peel(position, ${fixed ?? names.dim(dim)});`)
}

/** The parameters of a kernel, `first` in front. */
export function parameterList({ dims, attrs, tensors }: Parameters, first: readonly string[], names: Names): string {
  return [
    ...first,
    ...dims.map((dim) => `const int ${names.dim(dim)}`),
    ...attrs.map((attr) => `const ${scalarText[attr.type]} ${names.attr(attr.name)}`),
    ...tensors.map((tensor) => `const ${handleText(tensor, names)} ${names.tensor(tensor.name)}`),
  ].join(',\n    ')
}
