/**
 * `heddle tune`: measures schedule candidates on a device and writes a tuning file, which `heddle gen` reads. Preparing candidates needs
 * the front end and a compiler, and measuring needs the device: with `--prepare` and `--candidates` they run on different machines.
 */
import { join, resolve } from 'node:path'
import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { libraryTable } from '../bench/library/table.js'
import { type TuneResult, tune, tuningEntries } from '../bench/tune.js'
import { besideLibrary, planTuning, type TunePlan, tunePlanSchema } from '../bench/tune_plan.js'
import { tuneTable } from '../bench/tune_table.js'
import { generateCandidates, writeGenerated } from '../emit/index.js'
import { parseManifest } from '../emit/manifest/manifest.js'
import { findingError, usageError } from '../errors.js'
import { readText } from '../files.js'
import { expectApart, expectEmpty, writeWhole } from '../output.js'
import { architectureOf } from '../runtime/device.js'
import { compiledDevice, parseDevice } from '../runtime/device_name.js'
import { loadKernels } from '../runtime/library.js'
import { defaultDevice, openNamed, prepareNative } from '../runtime/open.js'
import { bestDeviceOn } from '../runtime/remote/open.js'
import type { TileSize } from '../schedule/tiles.js'
import { formatTuning, mergeTuning, sizeName, type TuningEntry } from '../schedule/tuning/tuning.js'
import { buildKernels, mebibytes, outputs, type Target } from '../toolchain/index.js'
import { readKernels } from '../verify/check/specs.js'
import { givenShapes, shapesOf } from './bench_options.js'
import { type CliContext, json } from './context.js'
import { countsOf, dimensions, positive } from './options.js'
import { compiledDeviceOption, type DeviceName, dtypes, onOption, openOptions } from './pipeline.js'
import { buildProgress } from './progress.js'
import { searchPath } from './search_path.js'
import { tuneLibrary } from './tune_library.js'
import { openTuning } from './tuning_file.js'

export interface TuneOptions {
  /** Names of kernels; default: every kernel that one of the lengths fits. */
  readonly kernels?: readonly string[] | undefined
  /** Lengths of rows; for matmuls, columns with their depth. */
  readonly lengths: readonly TileSize[]
  readonly rows: readonly number[]
  readonly dtype: (typeof dtypes)[number]
  readonly device?: DeviceName | undefined
  /** Machine of the device: a name of ~/.ssh/config, or a command prefix. */
  readonly on?: string | undefined
  /** Timed replays of each candidate. */
  readonly repeats: number
  readonly jobs?: number | undefined
  /** The only GPU architecture to build candidates for, such as `sm_90`; default: all that kernels are built for. */
  readonly architecture?: string | undefined
  /** Folder of the spec modules; default `specs`. */
  readonly specs?: string | undefined
  /** The tuning file; default `tuning.json` next to the specs. */
  readonly out?: string | undefined
  /** Only prepare candidates, in this folder. */
  readonly prepare?: string | undefined
  /** Only measure the candidates of this folder. */
  readonly candidates?: string | undefined
}

export interface TuneVerbResult {
  readonly folder: string
  /** Absent when candidates were only prepared. */
  readonly results?: readonly TuneResult[]
  readonly entries?: readonly TuningEntry[]
  readonly file?: string
}

/** Size limit of a library that is copied to the machine with the device: half a minute on a slow link. */
const limitBytes = 20 * 2 ** 20

const planFile = (folder: string): string => join(folder, 'candidates.json')

/** Writes the candidates' sources and their plan to a folder, and builds their library there. */
async function prepare(folder: string, target: Target, options: TuneOptions, context: CliContext): Promise<void> {
  const { root, signal } = context
  const { kernels, templates, graphs } = await readKernels(root, options.specs)
  const { plan, sets, tiles } = planTuning(kernels, templates, { ...options, target }, besideLibrary(graphs))
  const generated = join(folder, 'generated')
  await writeGenerated(generated, generateCandidates(sets, tiles))
  await writeWhole(planFile(folder), `${JSON.stringify(plan, null, 2)}\n`)
  const count = [...sets.map(({ choices }) => choices.length), ...tiles.map((set) => set.tiles.length)].reduce((a, b) => a + b, 0)
  context.log(`tune: ${count} candidates of ${plan.kernels.length} kernels, ${folder}\n`)
  const { jobs, architecture } = options
  const onProgress = buildProgress(target, context)
  const built = await buildKernels({
    target,
    root,
    signal,
    generated,
    outDir: join(folder, target),
    onProgress,
    ...(jobs === undefined ? {} : { jobs }),
    ...(architecture === undefined ? {} : { architecture: architecture.replace(/^sm_/, '') }),
  })
  const { bytes } = built.report.library
  if (bytes > limitBytes) {
    throw findingError(
      'tune.size',
      `${built.library} is ${mebibytes(bytes)} MiB, at most ${mebibytes(limitBytes)} MiB are allowed`,
      {
        hint: 'name fewer kernels or lengths',
      },
    )
  }
}

const prepareAgain = 'run `heddle tune --prepare`'

/** @throws usage `tune.plan` for a folder without a plan */
async function readPlan(folder: string): Promise<TunePlan> {
  const path = planFile(folder)
  const text = await readText(path, { code: 'tune.plan', hint: prepareAgain })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw usageError('tune.plan', `${path} is not JSON`, { hint: prepareAgain, cause })
  }
  const parsed = tunePlanSchema.safeParse(value)
  if (!parsed.success) throw usageError('tune.plan', `${path} is not a plan of candidates`, { hint: prepareAgain })
  return parsed.data
}

/** @throws usage `output.folder` for a folder with files that are not from an earlier `--prepare` */
async function expectOwnFolder(folder: string, { specs }: TuneOptions, root: string): Promise<void> {
  await expectApart(folder, { root, specs })
  const isPrepared = await readPlan(folder).then(
    () => true,
    () => false,
  )
  if (!isPrepared) await expectEmpty(folder, [], 'name a new or an empty folder with --prepare')
}

/** Measures the candidates of a folder and updates the tuning file. */
async function measure(folder: string, options: TuneOptions, context: CliContext): Promise<TuneVerbResult> {
  const { root, signal, log } = context
  const plan = await readPlan(folder)
  const { file, old, write } = await openTuning({ root, specs: options.specs, file: options.out })
  const text = join(folder, 'generated', 'manifest.json')
  const manifest = parseManifest(await readText(text, { code: 'tune.plan', hint: prepareAgain }), text, 'tune.plan')
  // A machine that only measures may have no specs; row layouts do not need them.
  const isRows = manifest.kernels.every(({ buffers }) => buffers.every(({ layout }) => layout === 'row'))
  const layouts = isRows ? {} : await (await searchPath(root, options.specs)).layouts()
  const wanted = options.device
  const chosen = wanted !== undefined && parseDevice(wanted).kind === plan.target ? wanted : plan.target
  const device = await openNamed(chosen, openOptions(context, { on: options.on, who: 'tune' }))
  try {
    const built = join(folder, plan.target, 'libheddle_kernels.so')
    await device.sendLibrary?.(built)
    const library = loadKernels(device, built, manifest)
    const info = device.info()
    log(`${info.name} (${plan.target})\n`)
    const rows = [...options.rows].sort((a, b) => a - b)
    const results = await tune(
      { device, library, layouts, manifest, plan, rows, repeats: options.repeats, signal },
      ({ kernel, ...size }) => log(`measured ${kernel}, rows of ${sizeName(size)}\n`),
    )
    const entries = tuningEntries(results, info)
    const architecture = architectureOf(info)
    const measured = results.map(({ kernel, dtype, length, depth }) => ({ kernel, dtype, length, depth, architecture }))
    await write(formatTuning(mergeTuning(old?.entries ?? [], entries, measured), old?.matmuls))
    log(`tune: ${entries.length} of ${results.length} sizes are faster than the default schedule, ${file}\n`)
    return { folder, results, entries, file }
  } finally {
    device.close()
  }
}

/**
 * Prepares candidates, measures them and writes the tuning file, or does only one half.
 * @throws usage `tune.*`, `tuning.*`; errors of the front end and `buildKernels`; environment for a missing device; finding `tune.size`
 */
export async function tuneVerb(options: TuneOptions, context: CliContext): Promise<TuneVerbResult> {
  const { root } = context
  const given = options.candidates ?? options.prepare
  const folder = given === undefined ? join(outputs(root).base, 'tune') : resolve(root, given)
  if (options.prepare !== undefined) await expectOwnFolder(folder, options, root)
  // Fails before compiling if the tuning file cannot be written.
  else await openTuning({ root, specs: options.specs, file: options.out })
  if (options.candidates === undefined) await prepare(folder, await targetFor(options, context), options, context)
  return options.prepare === undefined ? measure(folder, options, context) : { folder }
}

/** Target of the candidates. @throws errors of building the addon, and of connecting to another machine */
async function targetFor({ device, on, prepare }: TuneOptions, context: CliContext): Promise<Target> {
  const opening = openOptions(context, { on, who: 'tune' })
  if (on !== undefined) return targetOf(device ?? (await bestDeviceOn({ ...opening, on })))
  // A machine that only prepares needs no addon.
  if (device === undefined || prepare === undefined) await prepareNative(device, opening)
  return targetOf(device ?? defaultDevice())
}

/** @throws usage `device.kind` for `js` */
const targetOf = (name: DeviceName): Target => (compiledDevice(name) === 'simt' ? 'simt' : 'cuda')

/** Converts maps of results to records for JSON. */
const plain = ({ results, ...rest }: TuneVerbResult) => ({
  ...rest,
  results: results?.map(({ times, ...result }) => ({
    ...result,
    times: times.map(({ candidates, ...at }) => ({ ...at, candidates: Object.fromEntries(candidates) })),
  })),
})

const names = (text: string): string[] => text.split(',')

/** Parses sizes such as `768,3072x768`. */
const sizesOf = (text: string): TileSize[] =>
  names(text).map((size): TileSize => {
    const [length = '', depth, ...rest] = size.split('x')
    if (rest.length > 0) throw new InvalidArgumentError('Expected a length, or columns x depth.')
    return { length: positive(length), ...(depth === undefined ? {} : { depth: positive(depth) }) }
  })

export const tuneCommand = (context: () => CliContext) =>
  new Command('tune')
    .description('measure schedule candidates on a device and write a tuning file')
    .option('--kernels <names>', 'kernels, separated by commas; default: every kernel that one of the lengths fits', names)
    .option(
      '--lengths <lengths>',
      'row lengths, separated by commas; for matmuls columns x depth, such as 3072x768; for attention the head size',
      sizesOf,
      [{ length: 768 }],
    )
    .option('--rows <counts>', 'numbers of rows, separated by commas', countsOf, [256, 4096])
    .addOption(new Option('--dtype <dtype>', 'storage type').choices(dtypes).default('f16' as const))
    .addOption(compiledDeviceOption())
    .addOption(onOption().conflicts('prepare'))
    .option('--repeats <count>', 'timed replays of each candidate', positive, 20)
    .option('--jobs <count>', 'number of compilers in parallel', positive)
    .option('--architecture <name>', 'build candidates for this GPU architecture only, such as sm_90')
    .option('--specs <dir>', 'folder of the spec modules', 'specs')
    .option('--out <file>', 'tuning file; default: tuning.json beside the specs')
    .addOption(new Option('--prepare <dir>', 'only generate and build the candidates').conflicts('candidates'))
    .option('--candidates <dir>', 'only measure the candidates of an earlier --prepare')
    .option(
      '--library',
      'measure the algorithms of the matmul library instead, for the matmuls of a model, a graph or an encoder',
    )
    .option('--model <dir>', 'with --library: a model folder, at each of the shapes')
    .option('--graph <name>', 'with --library: a graph or program, of the project or a shipped one')
    .option('--plans <names>', 'with --library: fusion plans, separated by commas', names, ['unfused'])
    .option('--shapes <shapes>', 'with --library: batch x length, separated by commas; default: 1x128', shapesOf)
    .option('--batch <counts>', 'with --library: sequences, separated by commas, each with every --length', countsOf)
    .option('--length <counts>', 'with --library: tokens of a sequence, separated by commas', countsOf)
    .option('--heads <count>', 'with --library: heads of the encoder, if neither a model nor a graph is given', positive, 12)
    .option('--size <count>', 'with --library: elements per head', positive, 64)
    .option(
      '--most <count>',
      'with --library: algorithms per matmul, the suggestions of the library first, then other configurations',
      positive,
      256,
    )
    .option('--dims <dims>', 'with --graph: dimensions by name, such as m=512,n=768; default: usual sizes', dimensions)
    .option('--scales <file>', 'with --model: a scales file, for quantised plans')
    .option('--json', 'print the results as JSON')
    .action(async (options) => {
      if (options.library) {
        const found = await tuneLibrary({ ...options, shapes: givenShapes(options) }, context())
        context().out(options.json ? json(found) : libraryTable(found.results))
        return
      }
      const result = await tuneVerb(options, context())
      if (options.json) context().out(json(plain(result)))
      else if (result.results !== undefined) context().out(tuneTable(result.results))
    })
