/**
 * `heddle build`: the addon, the device plugins and the kernel libraries, ahead of time. Without a selection every kernel of the
 * project's generated text (or of the shipped text, in a project without any) goes into one library, which `bundle` packs; with
 * `--for` or `--filter` a few kernels are compiled into the cache, from which programs take what they ask for. What `--check` does is in
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
  findNvcc,
  hasCudaDevice,
  knownArchitecture,
  type NativeResult,
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
  /** Lets profilers and checkers name lines of CUDA text. */
  readonly lineInfo?: boolean | undefined
  /** `native`, `sm_80`, `sm_90` or `all`, which is the default. */
  readonly architecture?: string | undefined
}

export interface BuildVerbResult {
  readonly native: NativeResult
  /** Whole libraries, one a target; empty when kernels were selected. */
  readonly kernels: readonly BuildResult[]
  /** What was compiled of a selection, one a target. */
  readonly selected: readonly SelectedBuild[]
}

/** The targets a build is for. */
export async function wantedTargets(target: BuildVerbOptions['target']): Promise<readonly Target[]> {
  if (target === 'all') return targets
  if (target !== undefined) return [target]
  return hasCudaDevice() && (await findNvcc()) !== undefined ? targets : ['simt']
}

/** The number in the name of an architecture; undefined for `native` and `all`. @throws usage `build.architecture`, `toolchain.architecture` */
function numberOf(text: string | undefined): string | undefined {
  if (text === undefined || text === 'all' || text === 'native') return undefined
  const [, number] = /^sm_(\d+)$/.exec(text) ?? []
  if (number === undefined) {
    throw usageError('build.architecture', `${JSON.stringify(text)} is no architecture`, {
      hint: 'native, all, or one such as sm_90',
    })
  }
  knownArchitecture(number)
  return number
}

/** The number that the toolchain takes; undefined for all architectures. @throws usage, environment `build.architecture` */
async function architectureFrom(text: string | undefined, context: CliContext): Promise<string | undefined> {
  if (text !== 'native') return numberOf(text)
  await prepareNative('cuda', openOptions(context))
  const device = openDevice('cuda')
  try {
    const architecture = architectureOf(device.info())
    const found = architectureOn(architecture.replace(/\D/g, ''))
    if (found !== undefined) return found
    throw environmentError('build.architecture', `there is no code for ${architecture} alone`, {
      hint: 'use --architecture all, whose PTX the driver compiles for later GPUs',
    })
  } finally {
    device.close()
  }
}

/** @throws usage `build.*`; what `buildNative`, `buildKernels` and the model's loader throw */
export async function build(options: BuildVerbOptions, context: CliContext): Promise<BuildVerbResult> {
  const { root, signal } = context
  // What is refused is refused before anything is built.
  numberOf(options.architecture)
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
  const kernels: BuildResult[] = []
  const selected: SelectedBuild[] = []
  for (const target of wanted) {
    const onProgress = buildProgress(target, context)
    const how = { target, root, signal, onProgress, jobs: options.jobs, lineInfo: options.lineInfo ?? false }
    const of = target === 'cuda' ? { architecture } : {}
    if (isSelection) {
      const result = await buildSelection(options, { ...how, ...of })
      context.log(`${target}: ${result.compiled} of ${result.keys.length} kernels compiled, ${result.library}\n`)
      selected.push(result)
      continue
    }
    const result = await buildKernels({ ...how, ...of })
    const { objects } = result.report
    context.log(`${target}: ${result.compiled} of ${objects.length} files compiled, ${result.library}\n`)
    kernels.push(result)
  }
  return { native, kernels, selected }
}

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
    .option('--architecture <name>', 'of CUDA: native, sm_80, sm_90 or all; default: all')
    .option('--jobs <count>', 'compilers at a time', positive)
    .option('--line-info', 'let profilers and checkers name lines of CUDA text; doubles the library')
    .option('--check', 'with --target cuda: hold texts against nvcc and their record, and build nothing')
    .option('--record', 'with --check: compile what changed and write the record')
    .addOption(new Option('--sample <part>', 'with --check: the part of recorded texts to compile').argParser(sampleOf))
    .option('--json', 'print the build reports as JSON')
    .action(async (options) => {
      if (options.check !== true) refuseCheckOptions(options)
      const result = options.check === true ? await checkBuild(options, context()) : await build(options, context())
      if (options.json) context().out(json(result))
    })
