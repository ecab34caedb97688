/** `heddle build`: the addon, the device plugins and the kernel libraries, in that order. */
import { Command, Option } from '@commander-js/extra-typings'
import {
  type BuildResult,
  buildKernels,
  buildNative,
  findNvcc,
  type NativeResult,
  type Target,
  targets,
} from '../toolchain/index.js'
import { type CliContext, json } from './context.js'
import { positive } from './options.js'
import { buildProgress } from './progress.js'

export interface BuildVerbOptions {
  /** `all` needs every compiler; without a target, what this machine has compilers for is built. */
  readonly target?: Target | 'all' | undefined
  readonly jobs?: number | undefined
  /** Lets profilers and checkers name lines of CUDA text. */
  readonly lineInfo?: boolean | undefined
}

export interface BuildVerbResult {
  readonly native: NativeResult
  readonly kernels: readonly BuildResult[]
}

/** The targets a build is for. */
export async function wantedTargets(target: BuildVerbOptions['target']): Promise<readonly Target[]> {
  if (target === 'all') return targets
  if (target !== undefined) return [target]
  return (await findNvcc()) === undefined ? ['simt'] : targets
}

/** @throws what `buildNative` and `buildKernels` throw */
export async function build(options: BuildVerbOptions, context: CliContext): Promise<BuildVerbResult> {
  const { root, signal } = context
  const wanted = await wantedTargets(options.target)
  const native = await buildNative({ root, signal })
  context.log(`native: ${native.built ? 'built' : 'current'}, ${native.folder}\n`)
  const kernels: BuildResult[] = []
  for (const target of wanted) {
    const result = await buildKernels({
      target,
      root,
      signal,
      onProgress: buildProgress(target, context),
      ...(options.jobs === undefined ? {} : { jobs: options.jobs }),
      lineInfo: options.lineInfo ?? false,
    })
    const { objects } = result.report
    context.log(`${target}: ${result.compiled} of ${objects.length} files compiled, ${result.library}\n`)
    kernels.push(result)
  }
  return { native, kernels }
}

export const buildCommand = (context: () => CliContext) =>
  new Command('build')
    .description('build the addon, the device plugins and the kernel libraries')
    .addOption(
      new Option('--target <target>', 'default: what this machine has compilers for').choices(['simt', 'cuda', 'all'] as const),
    )
    .option('--jobs <count>', 'compilers at a time', positive)
    .option('--line-info', 'let profilers and checkers name lines of CUDA text; doubles the library')
    .option('--json', 'print the build reports as JSON')
    .action(async (options) => {
      const result = await build(options, context())
      if (options.json) context().out(json(result))
    })
