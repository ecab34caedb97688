/**
 * `heddle build`: builds the addon, the device plugins and the kernel libraries ahead of time. Without a selection, every kernel of the
 * project's generated source (or of the shipped source, in a project without any) goes into one library, which `bundle` packs. With
 * `--for` or `--filter`, the selected kernels are compiled into the cache, from which programs load them on demand. `--check` is in
 * build_check.ts.
 */
import { Command, Option } from '@commander-js/extra-typings'
import { environmentError, usageError } from '../errors.js'
import { architectureOf, openDevice } from '../runtime/device.js'
import { prepareNative } from '../runtime/open.js'
import { expectGenerated } from '../toolchain/gen_state.js'
import {
  architectureOn,
  type BuildResult,
  buildKernels,
  buildNative,
  compiledOnly,
  findNvcc,
  hasCudaDevice,
  type KernelSize,
  knownArchitecture,
  type NativeResult,
  refuseLarge,
  type Target,
  targets,
} from '../toolchain/index.js'
import { checkBuild, refuseCheckOptions, sampleOf } from './build_check.js'
import { type CliContext, json } from './context.js'
import { positive } from './options.js'
import { dtypes, openOptions } from './pipeline.js'
import { buildProgress } from './progress.js'
import { buildSelection, type SelectedBuild, type Selection } from './selection.js'

export interface BuildVerbOptions extends Selection {
  /** Without a target: simt, and cuda where this machine has a CUDA device and nvcc. */
  readonly target?: Target | 'all' | undefined
  readonly jobs?: number | undefined
  /** Adds line information of the CUDA source for profilers and checkers. */
  readonly lineInfo?: boolean | undefined
  /** `native`, a list such as `sm_89,sm_90`, or `all` that have been measured, which is the default. */
  readonly architecture?: string | undefined
  /** Prints the bytes that each kernel adds to a library. */
  readonly sizes?: boolean | undefined
  /** Maximum size of a kernel in kilobytes, of 1,024 bytes. */
  readonly limitKb?: number | undefined
}

export interface BuildVerbResult {
  readonly native: NativeResult
  /** Whole libraries, one per target; empty when kernels were selected. */
  readonly kernels: readonly BuildResult[]
  /** Results of a selection, one per target. */
  readonly selected: readonly SelectedBuild[]
}

/** Targets of a build. */
export async function wantedTargets(target: BuildVerbOptions['target']): Promise<readonly Target[]> {
  if (target === 'all') return targets
  if (target !== undefined) return [target]
  return hasCudaDevice() && (await findNvcc()) !== undefined ? targets : ['simt']
}

/** Numbers in a list of architectures; undefined for `native` and `all`. @throws usage `build.architecture`, `toolchain.architecture` */
function numbersOf(text: string | undefined): string | undefined {
  if (text === undefined || text === 'all' || text === 'native') return undefined
  const numbers = text.split(',').map((name) => {
    const [, number] = /^sm_(\d+)a?$/.exec(name) ?? []
    if (number === undefined) {
      throw usageError('build.architecture', `${JSON.stringify(name)} is not an architecture`, {
        hint: 'native, all, or a list such as sm_89,sm_90',
      })
    }
    knownArchitecture(number)
    return number
  })
  return [...new Set(numbers)].join()
}

/** A line about architectures on which no kernel has been run. */
function untriedText(architecture: string | undefined): string | undefined {
  const untried = (architecture ?? '').split(',').filter((number) => compiledOnly.some((known) => known === number))
  if (untried.length === 0) return undefined
  return `note: kernels are only compiled for ${untried.map((number) => `sm_${number}`).join(', ')}, not tried or measured there\n`
}

/** Architecture number for the toolchain; undefined for all architectures. @throws usage, environment `build.architecture` */
async function architectureFrom(text: string | undefined, context: CliContext): Promise<string | undefined> {
  if (text !== 'native') return numbersOf(text)
  await prepareNative('cuda', openOptions(context))
  const device = openDevice('cuda')
  try {
    const architecture = architectureOf(device.info())
    const found = architectureOn(architecture.replace(/\D/g, ''))
    if (found !== undefined) return found
    throw environmentError('build.architecture', `no code can be built for ${architecture} alone`, {
      hint: 'use --architecture all, whose PTX the driver compiles for later GPUs',
    })
  } finally {
    device.close()
  }
}

/** @throws usage `build.*`; errors of `buildNative`, `buildKernels` and the model's loader */
export async function build(options: BuildVerbOptions, context: CliContext): Promise<BuildVerbResult> {
  const { root, signal } = context
  // Options are checked before anything is built.
  numbersOf(options.architecture)
  const isSelection = options.for !== undefined || options.filter !== undefined
  if (!isSelection) await expectGenerated(root)
  const wanted = await wantedTargets(options.target)
  const native = await buildNative({
    signal,
    cuda: wanted.includes('cuda'),
    onStart: (text) => context.log(`native: ${text}\n`),
  })
  context.log(`native: ${native.built ? 'built' : 'current'}, ${native.folder}\n`)
  const architecture = wanted.includes('cuda') ? await architectureFrom(options.architecture, context) : undefined
  context.log(untriedText(architecture) ?? '')
  const kernels: BuildResult[] = []
  const selected: SelectedBuild[] = []
  for (const target of wanted) {
    const onProgress = buildProgress(target, context)
    const how = { target, root, signal, onProgress, jobs: options.jobs, lineInfo: options.lineInfo ?? false }
    const alone = options.sizes === true || options.limitKb !== undefined
    const of = target === 'cuda' ? { architecture } : {}
    if (isSelection) {
      const result = await buildSelection(options, { ...how, ...of, alone })
      context.log(`${target}: ${result.compiled} of ${result.keys.length} kernels compiled, ${result.library}\n`)
      selected.push(result)
      reportSizes(result.sizes, target, options, context)
      continue
    }
    const result = await buildKernels({ ...how, ...of, sizes: alone })
    const { objects } = result.report
    context.log(`${target}: ${result.compiled} of ${objects.length} files compiled, ${result.library}\n`)
    kernels.push(result)
    reportSizes(result.sizes, target, options, context)
  }
  return { native, kernels, selected }
}

/** Prints sizes, the largest first, with their sum. @throws finding `build.size` */
function reportSizes(all: readonly KernelSize[], target: Target, options: BuildVerbOptions, context: CliContext): void {
  const { sizes = false, limitKb } = options
  if (sizes) {
    const line = (bytes: number, gpuBytes: number, name: string): string =>
      `${kilobytes(bytes)} kB${target === 'cuda' ? `, GPU ${kilobytes(gpuBytes)} kB` : ''}  ${name}\n`
    const sum = (of: (size: KernelSize) => number): number => all.reduce((total, size) => total + of(size), 0)
    const lines = all.map(({ bytes, gpuBytes, sources }) => line(bytes, gpuBytes, sources.join(', ')))
    const total = line(
      sum(({ bytes }) => bytes),
      sum(({ gpuBytes }) => gpuBytes),
      `${target}: all`,
    )
    context.log([...lines, total].join(''))
  }
  if (limitKb !== undefined) refuseLarge(all, 1024 * limitKb)
}

const kilobytes = (bytes: number): string => (bytes / 1024).toFixed(1).padStart(8)

export const buildCommand = (context: () => CliContext) =>
  new Command('build')
    .description('build the addon, the device plugins and the kernel libraries')
    .addOption(
      new Option('--target <target>', 'default: simt, and cuda on a machine with a CUDA device').choices([
        'simt',
        'cuda',
        'all',
      ] as const),
    )
    .option('--for <model>', 'only the kernels that a model folder needs')
    .option('--plan <name>', 'with --for: the fusion plan')
    .addOption(new Option('--dtype <dtype>', 'with --for: storage type of weights and activations').choices(dtypes))
    .option('--filter <regexp>', 'only kernels whose name matches')
    .option(
      '--architecture <name>',
      'of CUDA: native, all (sm_80, sm_90 and PTX), or a list such as sm_86,sm_89,sm_90,sm_100,sm_120; default: all',
    )
    .option('--sizes', 'print the bytes that the kernels of each op, or each selected kernel, add to a library')
    .option('--limit-kb <count>', 'exit 1 if one of them adds more kilobytes', positive)
    .option('--jobs <count>', 'number of compilers in parallel', positive)
    .option('--line-info', 'add line information of CUDA sources for profilers and checkers; doubles the size of the library')
    .option('--check', 'with --target cuda: compile sources with nvcc, compare with the record, and build nothing')
    .option('--record', 'with --check: compile changed sources and write the record')
    .addOption(new Option('--sample <part>', 'with --check: the part of recorded sources to compile').argParser(sampleOf))
    .option('--json', 'print the build reports as JSON')
    .action(async (options) => {
      if (options.check !== true) refuseCheckOptions(options)
      const result = options.check === true ? await checkBuild(options, context()) : await build(options, context())
      if (options.json) context().out(json(result))
    })
