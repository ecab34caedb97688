/** `heddle export NAME`: writes a program, a graph or a kernel as C++ that builds without heddle, with a C header and a PyTorch op. */
import { join, resolve as resolvePath } from 'node:path'
import { Command, Option } from '@commander-js/extra-typings'
import { usageError } from '../errors.js'
import {
  exportGenerator,
  exportModel,
  isGenerator,
  type LoweredGenerator,
  libraryOf,
  lower,
  resolve,
  writeExport,
  writeGenerator,
  writeWeights,
} from '../export/index.js'
import { targets } from '../toolchain/index.js'
import { type CliContext, json } from './context.js'
import { runExportLibrary } from './export_library.js'
import { type ExportOptions, kernelsOf, leftOut, numbersOf, sourcesOf, summary } from './export_sources.js'
import { dimensions, dtypesOf, jsonObject } from './options.js'

export interface ExportResult {
  readonly name: string
  readonly out: string
  /** Dimensions given at each run, and fixed ones. */
  readonly dims: readonly string[]
  readonly fixed: Readonly<Record<string, number>>
  readonly steps: number
  readonly kernels: number
  /** The program's own files, below `out`. */
  readonly files: readonly string[]
}

/** @throws usage `export.*`, `plan.*`, `program.*`; errors of reading a model folder */
export async function runExport(name: string, options: ExportOptions, context: CliContext): Promise<ExportResult> {
  const { root, signal, log } = context
  const { plan, dtype, target, dims = {}, config, model } = options
  const scales = options.scales === undefined ? undefined : resolvePath(root, options.scales)
  if (model === undefined && scales !== undefined)
    throw usageError('export.scales', 'scales belong to a model, but no model folder is given', { hint: 'add --model FOLDER' })
  const { out, place, searched, declarations, layouts } = await sourcesOf(options, context)
  const { manifest } = searched
  const asked = { plan, dtype, manifest, declarations, config, attrs: numbersOf(options.attrs) }
  if (model !== undefined && isGenerator(name)) {
    expectNoSizes(name, options)
    const generator = await exportGenerator(name, resolvePath(root, model), { ...asked, scales }, { manifest, layouts }, signal)
    const weights = (path: string) => writeWeights(path, generator.weights, signal)
    const { files, changed } = await writeGenerator(generator, { out, searched, target, place, weights })
    const programs = [generator.reader, ...generator.steppers].map(({ lowered }) => lowered)
    log(`${generatorSummary(generator)}; ${changed.length} files written or removed\n`)
    const steps = programs.reduce((sum, { steps }) => sum + steps.length, 0)
    return { name, out, dims: [], fixed: generator.reader.lowered.fixed, steps, kernels: kernelsOf(programs), files }
  }
  const found = model === undefined ? undefined : await exportModel(name, resolvePath(root, model), { ...asked, scales }, signal)
  const resolved = found ?? resolve(name, asked)
  const lowered = lower({ ...resolved, manifest, layouts, dtype, dims: { ...found?.dims, ...dims } })
  const weights = found && ((path: string) => writeWeights(path, found.prepared(layouts), signal))
  const { files, changed } = await writeExport(libraryOf(lowered.name, [lowered]), { out, searched, target, place, weights })
  log(`${summary(lowered)}; ${changed.length} files written or removed\n`)
  const { dims: open, fixed, steps } = lowered
  return { name: lowered.name, out, dims: open, fixed, steps: steps.length, kernels: kernelsOf([lowered]), files }
}

/** @throws usage `export.dims`, `export.attrs`: a generator takes its sizes from its model and from each generation */
function expectNoSizes(name: string, { dims = {}, attrs = {} }: ExportOptions): void {
  const [dim] = Object.keys(dims)
  if (dim !== undefined)
    throw usageError('export.dims', `${name} has no fixed dimension ${dim}: sizes are given at each generation`, {
      hint: 'leave --dims out',
    })
  if (Object.keys(attrs).length > 0) throw usageError('export.attrs', `${name} is a generator and has no attributes`)
}

const generatorSummary = ({ parts, plan, reader, steppers }: LoweredGenerator): string => {
  const left = [reader, ...steppers].flatMap(({ lowered }) => lowered.left)
  return `texts by ${parts.name} under ${plan}, chosen by ${steppers.map(({ way }) => way).join(', ')}${leftOut([...new Set(left)])}`
}

export const exportCommand = (context: () => CliContext) =>
  new Command('export')
    .description(
      'write programs, graphs or kernels as a C++ library that builds with CMake, with a C header, an example and a PyTorch op of each',
    )
    .argument('<names...>', 'programs, graphs or kernels of the project, or shipped ones')
    .option('--plan <plan>', 'fusion plan; of several, the first that covers a graph is used for it', 'unfused')
    .option('--dtype <dtypes>', 'storage types, separated by commas', dtypesOf, ['f32'] as const)
    .option('--library <name>', 'name of the library; default: the name of its program, or of the folder')
    .requiredOption('--out <dir>', 'the folder to write')
    .addOption(new Option('--target <target>', 'default target of the CMake build').choices(targets).default('cuda' as const))
    .option('--dims <dims>', 'fixed sizes, such as n=768,h=12; unspecified sizes of weights take their defaults', dimensions)
    .option(
      '--config <json>',
      'changes to a program\'s default configuration, such as \'{ "layers": 2 }\'; with --model, fields that its folder leaves open, such as \'{ "choice": "sample_top" }\'',
      jsonObject,
    )
    .option('--attrs <json>', 'numbers of a graph or a kernel, such as \'{ "eps": 1e-5 }\'; of several, by name', jsonObject)
    .option(
      '--model <folder>',
      'for llama and seq2seq, which generate text, and for bert, bert_pairs, seq2seq_encoder, seq2seq_encoder_pairs, seq2seq_decoder, llama_prompt, llama_step and llama_beams: sizes, weights and settings of a model folder',
    )
    .option('--scales <file>', 'with --model, for bert: the file that `heddle calibrate` wrote, for plans that need scales')
    .option('--specs <dir>', 'folder of the spec modules', 'specs')
    .option('--generated <dir>', "folder of the project's generated source", 'generated')
    .option('--json', 'print the result as JSON')
    .action(async (names, { dtype: types, library, ...options }) => {
      const [[name = ''], [dtype = 'f32']] = [names, types]
      const isOne = names.length === 1 && types.length === 1 && library === undefined && !options.plan.includes(',')
      const result = isOne
        ? await runExport(name, { ...options, dtype }, context())
        : await runExportLibrary(names, types, { ...options, library }, context())
      const { out, files } = result
      context().out(options.json ? json(result) : `${files.map((file) => `${join(out, file)}\n`).join('')}`)
    })
