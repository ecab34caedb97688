/** Launches of elementwise kernels: one thread per chunk, measured variants, and tiles of staged loads. */
import type CodeBlockWriter from 'code-block-writer'
import { extentOf } from '../../ir/row_axis.js'
import type { Staging } from '../../schedule/access/staged_loads.js'
import { type ElementwiseProgram, extentIn, type Limit, type MappedKernel, onlyPass } from '../../schedule/mapped.js'
import { functionName } from '../kernels/frame.js'
import { expressionText, type Scope, wideText } from '../print/expression.js'
import { capitalise, conditionText, extentText, productText, toCount } from './conditions.js'
import { workArguments, writeSlots } from './slots.js'

/** Launches tiles. They differ in shape and in the width of their stores: the header chooses. */
export function writeTiles(
  mapped: MappedKernel,
  program: ElementwiseProgram,
  { axis, isRun }: Staging,
  args: string,
  scope: Scope,
  writer: CodeBlockWriter,
): void {
  const others = mapped.axes.filter((each) => each !== axis).map((each) => extentText(each, mapped, scope))
  const [rows, columns] = [extentOf(axis, extentIn(mapped)), onlyPass(program).loop.length].map((side) => wideText(side, scope))
  writer.write('const auto run = [&](auto shape, auto width) -> int32_t ').inlineBlock(() => {
    const kernel = `${functionName(mapped, 'tiled')}<decltype(shape), decltype(width)::value>`
    const given = [productText(others), rows, columns, kernel, args].join(', ')
    writer.writeLine(`return heddle::launch_tiles<decltype(shape)>(launch, error, arguments, "${mapped.key}", ${given});`)
  })
  writer.write(';').newLine()
  writer.writeLine(`return heddle::choose_tiles<${mapped.vec}, ${isRun}>(${rows}, ${columns}, run);`)
}

/** Source fragments of a launch over elements. */
interface ElementLaunch {
  readonly extents: readonly string[]
  readonly chunks: string
  readonly name: string
  readonly threads: string
  readonly kernel: string
  readonly args: string
}

/** One thread per chunk over all axes; an axis with an update range counts for the maximum length of the range. */
export function writeElements(mapped: MappedKernel, launch: ElementLaunch, scope: Scope, writer: CodeBlockWriter): void {
  const { extents, chunks, name, threads, kernel, args } = launch
  const counts = writeSlots(mapped, extents, scope, writer)
  writer.writeLine(`const int64_t work = arguments.work(${productText([...counts, chunks])}, ${threads});`)
  writer.writeLine('if (arguments.status != HEDDLE_OK || work == 0) return arguments.status;')
  const given = `${workArguments(mapped, 'work')}, ${args}`
  writer.writeLine(`return heddle::launch_elements(launch, error, ${name}, work, ${threads}, ${kernel}, ${given});`)
}

/** Source fragments of a launch over one run of elements. */
interface RunLaunch {
  readonly extents: readonly string[]
  /** Arguments of the kernel. @param extent source of the extent of a dimension */
  readonly args: (extent: (dim: string) => string) => string
}

/** Rows of a run of elements (src/schedule/access/one_run.ts), which are one long row where they are not aligned. @param dims those of their length */
export function writeRun(
  mapped: MappedKernel,
  program: ElementwiseProgram,
  dims: readonly string[],
  { extents, args }: RunLaunch,
  scope: Scope,
  writer: CodeBlockWriter,
): void {
  const { names } = scope
  const { threads } = program
  const [all, isRun] = [names.fresh('all'), names.fresh('is_run')]
  const { length: extent } = onlyPass(program).loop
  const length = wideText(extent, scope)
  const rows = productText(extents)
  writer.writeLine('// The chunks of one long row are aligned where those of many are not.')
  writer.writeLine(`const heddle::Count ${all} = ${rows} * ${wideText(extent, scope, toCount)};`)
  writer.writeLine(`const bool ${isRun} = ${length} % VEC != 0 && ${all}.value <= INT32_MAX;`)
  const chunks = (elements: string): string => `heddle::chunks_of<VEC>(static_cast<int>(${elements}))`
  const given = args((dim) => {
    const at = dims.indexOf(dim)
    return at < 0 ? names.dim(dim) : `${isRun} ? ${at === 0 ? `${all}.value` : 'int64_t{1}'} : ${names.dim(dim)}`
  })
  const kernel = functionName(mapped, 'single')
  const count = `${isRun} ? heddle::Count(${chunks(`${all}.value`)}) : ${rows} * ${chunks(length)}`
  const launch = { extents: [], chunks: count, name: `"${mapped.key}"`, threads: `${threads}` }
  writeElements(mapped, { ...launch, kernel, args: given }, scope, writer)
}

/** Elementwise variants differ in the number of chunks, so each counts its own. */
export function writeGenericElements(
  mapped: MappedKernel,
  program: ElementwiseProgram,
  args: string,
  extents: readonly string[],
  scope: Scope,
  writer: CodeBlockWriter,
): void {
  const { tuned = [], threads } = program
  const length = expressionText(onlyPass(program).loop.length, scope)
  if (tuned.some(({ limit }) => limit.tuned !== undefined)) writer.writeLine(`const int64_t length = ${length};`)
  if (tuned.some(isLimitedInRows)) {
    writer.writeLine(`const int64_t rows = arguments.work(${productText(extents)}, 1);`)
  }
  writer.write('const auto run = [&](auto width, const char* name, int threads, auto kernel) -> int32_t ').inlineBlock(() => {
    const chunks = `heddle::chunks_of<decltype(width)::value>(static_cast<int>(${length}))`
    writeElements(mapped, { extents, chunks, name: 'name', threads: 'threads', kernel: 'kernel', args }, scope, writer)
  })
  writer.write(';').newLine()
  const kernel = functionName(mapped, 'single')
  const call = (name: string, vec: number, block: number) =>
    `return run(heddle::Width<${vec}>{}, "${name}", ${block}, ${kernel}<${vec}, ${block}>);`
  for (const variant of tuned) {
    writer.writeLine(`// ${capitalise(variant.reason)}.`)
    writer.writeLine(`${conditionText(variant.limit)}${call(`${mapped.key}_${variant.name}`, variant.vec, variant.threads)}`)
  }
  if (tuned.every(({ limit }) => limit.tuned !== undefined)) writer.writeLine(call(mapped.key, mapped.vec, threads))
}

const isLimitedInRows = ({ limit }: { readonly limit: Limit }): boolean =>
  limit.rows !== undefined || (limit.tuned?.fromRows ?? 1) > 1
