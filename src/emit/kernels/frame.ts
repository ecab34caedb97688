/** Shared parts of all kernel functions of a mapped kernel: writers, names of functions, and the state of printing. */
import CodeBlockWriter from 'code-block-writer'
import type { Walk } from '../../loop/ir.js'
import { launchedVersion, widthsOf } from '../../loop/kernel_loops.js'
import { multiplesOf } from '../../schedule/access/multiples.js'
import { declaring, type MappedKernel } from '../../schedule/mapped.js'
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
    ownName: (own) => userMonoidName(own, declaring(mapped)),
    widths: widthsOf(mapped),
    multiples: multiplesOf(kernel),
    ...(launchedVersion(mapped, walk) === undefined ? {} : { isLaunched: true }),
  }
}
