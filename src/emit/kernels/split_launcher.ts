/** Body of a launcher that runs several launches of one op in order, with scratch tensors between them (native/device/split.cuh). */
import type CodeBlockWriter from 'code-block-writer'
import type { Kernel, TensorParam } from '../../ir/kernel.js'
import type { Names } from '../print/names.js'
import { bodyWriter, lines } from './frame.js'

/** Launches in order. */
export interface Sequence {
  readonly scratch: readonly TensorParam[]
  /** Source of the number of elements of each scratch tensor; of none where no launch leaves results to a later one. */
  readonly sizes: readonly string[]
  /** Functions to run, each with its tensors. */
  readonly runs: readonly (readonly [run: string, tensors: readonly TensorParam[]])[]
}

export interface SplitLauncher {
  readonly key: string
  /** The op: the buffers, dimensions and attributes that the launcher takes. */
  readonly kernel: Pick<Kernel, 'tensors' | 'dims' | 'attrs'>
  readonly names: Names
  /** Dimensions that the lines and sizes read. */
  readonly used: ReadonlySet<string>
  /** Lines in front of the launches. */
  readonly before: readonly string[]
  readonly sequence: Sequence
  /** Launches in place of these, where a condition in source holds. */
  readonly instead?: { readonly comment: string; readonly when: string; readonly sequence: Sequence }
}

/** Lines of the launcher. */
export function splitLauncher({ key, kernel, names, used, before, sequence, instead }: SplitLauncher): string {
  const writer = bodyWriter()
  const counts = [kernel.tensors, kernel.dims, kernel.attrs].map((list) => list.length).join(', ')
  writer.writeLine(`heddle::Arguments arguments(launch, error, {"${key}", ${counts}});`)
  kernel.dims.forEach((name, i) => {
    if (used.has(name)) writer.writeLine(`const int64_t ${names.dim(name)} = arguments.dim(${i}, "${name}");`)
  })
  for (const line of before) writer.writeLine(line)
  if (instead !== undefined) {
    writer.writeLine(`// ${instead.comment}`)
    writer.write(`if (${instead.when}) `).block(() => writeSequence(instead.sequence, key, kernel, writer))
  }
  writeSequence(sequence, key, kernel, writer)
  return lines(writer)
}

/** Source that runs launches in order. A tensor is given by its place: that of a buffer, or -1 - the place of a scratch tensor. */
function writeSequence(
  { scratch, sizes, runs }: Sequence,
  key: string,
  kernel: SplitLauncher['kernel'],
  writer: CodeBlockWriter,
): void {
  const placeOf = ({ name }: TensorParam): number => {
    const at = kernel.tensors.findIndex((tensor) => tensor.name === name)
    return at >= 0 ? at : -1 - scratch.findIndex((tensor) => tensor.name === name)
  }
  const [[only, own] = ['', []], ...others] = runs
  if (others.length === 0 && own.length === kernel.tensors.length && own.every((tensor, at) => placeOf(tensor) === at)) {
    writer.writeLine(`return ${only}(launch, error);`)
    return
  }
  const elements = sizes.length === 0 ? ['heddle::Count(0)'] : sizes
  writer.writeLine(`const heddle::Count elements[] = {${elements.join(', ')}};`)
  writer.writeLine(`heddle::Split<${elements.length}> split(launch, error, arguments, "${key}", elements);`)
  for (const [run, tensors] of runs) writer.writeLine(`split.run(${[run, ...tensors.map(placeOf)].join(', ')});`)
  writer.writeLine('return split.status;')
}
