/** Kernels for `heddle explore`: all representations of each, with the spec lines that each line was compiled from. */
import { kernelView, namesOf } from '../explorer/kernel_view.js'
import type { KernelView } from '../explorer/model.js'
import type { TracedText } from '../ir/trace.js'
import { isWithin, nameIn } from '../path_names.js'
import { disassemble } from '../toolchain/index.js'
import { packageRoot } from '../toolchain/paths.js'
import { readKernels } from '../verify/check/specs.js'
import type { CliContext } from './context.js'
import { specPath, statementsOver } from './declared_text.js'
import { type Inspected, inspectAll } from './inspect.js'
import { kernelPasses } from './inspect_passes.js'
import { readTuning } from './tuning_file.js'

const asLists = (places: TracedText['places']): string[][] => places.map((each) => [...each])

/** Statements outside the body that a kernel was compiled from, by file and line. */
async function othersOf(
  root: string,
  { inspection: { source, bodyLine, body } }: Inspected,
  texts: readonly TracedText['places'][],
): Promise<KernelView['others']> {
  const lines = new Map<string, Set<number>>()
  const bodyEnd = bodyLine + body.split('\n').length
  for (const place of new Set(texts.flat(2))) {
    const [, file = '', number] = /^(.*):(\d+)$/.exec(place) ?? []
    const line = Number(number)
    const isBody = file === source.file && line >= bodyLine && line < bodyEnd
    if (!isBody) lines.set(file, (lines.get(file) ?? new Set()).add(line))
  }
  const found: KernelView['others'] = []
  for (const [file, numbers] of [...lines].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const statements = await statementsOver(
      root,
      specPath(root, file),
      [...numbers].sort((a, b) => a - b),
    )
    for (const { line, text } of statements) found.push({ source: `${file}:${line}`, text })
  }
  return found
}

/** Spec locations per line of the generated source; empty if the source is from an older compiler or an earlier edit. */
async function cudaPlaces(
  { inspection: { key, cuda }, kernel }: Inspected,
  { root }: CliContext,
  specs: string | undefined,
  schedules: () => Promise<Parameters<typeof import('../emit/traced.js')['tracedText']>[2]['schedules']>,
): Promise<string[][]> {
  const { tracedText } = await import('../emit/traced.js')
  const own = isWithin(root, cuda.file) ? root : packageRoot()
  const tuning = await readTuning({ root: own, specs: own === root ? specs : undefined })
  const plain = tracedText(kernel, key, { tuning, schedules: {} })
  const made = plain?.text === cuda.text ? plain : tracedText(kernel, key, { tuning, schedules: await schedules() })
  return made?.text === cuda.text ? asLists(made.places) : []
}

/**
 * Generated kernels with all their stages.
 * @param compile true to run nvcc for unrecorded resources and machine code, which takes seconds per source
 */
export async function kernelViews(
  names: readonly string[],
  specs: string | undefined,
  context: CliContext,
  compile: boolean,
): Promise<KernelView[]> {
  const { root, signal } = context
  const found = await inspectAll(names, specs, context, { compile })
  let read: ReturnType<typeof readKernels> | undefined
  const schedules = async () => {
    read ??= readKernels(root, specs)
    return (await read).schedules
  }
  return Promise.all(
    found.map(async (each) => {
      const { inspection, kernel } = each
      const { file, text } = inspection.cuda
      const stages = await kernelPasses(kernel, inspection.key)
      const places = await cudaPlaces(each, context, specs, schedules)
      const source = { ...inspection.source, line: inspection.bodyLine }
      const shown = {
        ...inspection,
        source,
        others: await othersOf(root, each, [...stages.flatMap(({ places: of }) => (of === undefined ? [] : [of])), places]),
        cuda: { file: nameIn(root, file), text, places },
        sass: await sassOf(inspection, compile, signal),
      }
      return kernelView(shown, namesOf(kernel), stages)
    }),
  )
}

async function sassOf(
  { key, cuda }: Inspected['inspection'],
  compile: boolean,
  signal: AbortSignal,
): Promise<KernelView['sass']> {
  if (!compile) return { missing: `nvcc was not run: heddle explore ${key} runs it` }
  const made = await disassemble({ source: `cuda/${key}.cu`, path: cuda.file }, signal)
  if ('missing' in made) return { missing: made.missing }
  const kernels = made.kernels.map((each) => ({ ...each, lines: each.lines.map((lines) => [...lines]) }))
  return { from: made.from, kernels }
}
