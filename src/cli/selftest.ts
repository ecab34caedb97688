/** `heddle selftest`: verifies a device, its kernel library and models on this machine. Needs no compiler. */
import { existsSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { Command, Option } from '@commander-js/extra-typings'
import { usageError } from '../errors.js'
import { openKernels } from '../runtime/open.js'
import { installation, packageRoot, readManifestOf } from '../toolchain/index.js'
import { checkExports, expectExports, exportFolders } from '../verify/exports.js'
import { type GroupReport, type SelftestReport, selftest } from '../verify/selftest.js'
import { type CliContext, json } from './context.js'
import { pattern } from './options.js'
import { type DeviceName, deviceOption, dtypes, openOptions } from './pipeline.js'

export interface SelftestOptions {
  readonly device?: DeviceName | undefined
  readonly dtype?: (typeof dtypes)[number] | undefined
  /** A folder with a model and its goldens, run besides those of `golden`. */
  readonly model?: string | undefined
  /** Folders that `test/peers/make_bert.py` wrote. */
  readonly golden?: readonly string[] | undefined
  /** Folders of exports for PyTorch, as test/peers/make_exports.ts writes them; those of the bundle by default. */
  readonly exports?: string | undefined
  /** A regular expression over check names. */
  readonly filter?: string | undefined
}

/** Failures of one group that are printed; the count says how many there were. */
const shownFailures = 10

function modelFolder(path: string): { name: string; dir: string } {
  if (!existsSync(join(path, 'config.json')))
    throw usageError('selftest.model', `${path} is not a model folder: it has no config.json`)
  return { name: basename(path), dir: path }
}

/** One line a group, one more for each failure or, of models, for each result. */
export function describeGroup({ name, passed, failures, details, seconds }: GroupReport): string {
  const lines = [`${name}: ${passed} passed, ${failures.length} failed (${seconds.toFixed(1)} s)`]
  const worth = details.length > 0 ? details : failures.slice(0, shownFailures)
  for (const result of worth) lines.push(`  ${result.passed ? 'ok  ' : 'FAIL'} ${result.name}: ${result.detail}`)
  if (worth === details || failures.length <= shownFailures) return `${lines.join('\n')}\n`
  return `${lines.join('\n')}\n  and ${failures.length - shownFailures} more\n`
}

/** The closing line, in the form CI looks for. */
export const summaryLine = ({ passed, failed }: SelftestReport): string => `${passed} passed, ${failed} failed\n`

/** @throws usage `selftest.*`, `manifest.*`; environment for a missing device, addon or compiler */
export async function runSelftest(options: SelftestOptions, context: CliContext): Promise<SelftestReport> {
  const { root, signal } = context
  const filter = pattern(options.filter, 'selftest.filter')
  const models = [...(options.model === undefined ? [] : [options.model]), ...(options.golden ?? [])].map((path) =>
    modelFolder(resolve(root, path)),
  )
  const exports = await exportsOf(options.exports, filter, root)
  const { device, library, manifest } = await openKernels(options.device, openOptions(context))
  // A project's own ops are what `heddle check` is for: here an own op would be held against the shipped body of its name.
  const shipped = await readManifestOf(installation(root).generated.at(-1) ?? root)
  const digests = new Map(shipped.kernels.map(({ key, digest }) => [key, digest]))
  const kernels = manifest.kernels.filter(({ key, digest }) => digests.get(key) === digest)
  try {
    context.log(`${device.info().name} (${device.kind}), ${manifest.kernels.length} kernels\n`)
    const report = await selftest(
      {
        device,
        library,
        manifest,
        kernels,
        models,
        dtypes: options.dtype === undefined ? dtypes : [options.dtype],
        filter,
        besides: exports.length > 0,
        signal,
      },
      (group) => context.log(describeGroup(group)),
    )
    return await withExports(report, exports, context)
  } finally {
    device.close()
  }
}

/** The exports that are named, or those of the bundle, as far as the filter leaves them. @throws usage `selftest.exports` */
async function exportsOf(exports: string | undefined, filter: RegExp | undefined, root: string): Promise<readonly string[]> {
  const own = installation(root).portable ? await exportFolders(join(packageRoot(), 'exports')) : []
  const folders = exports === undefined ? own : await expectExports(resolve(root, exports))
  return folders.filter((folder) => filter?.test(`export ${basename(folder)}`) ?? true)
}

/** The report with that of exports behind it, where there are any, and PyTorch to run them. */
async function withExports(
  report: SelftestReport,
  wanted: readonly string[],
  { signal, log }: CliContext,
): Promise<SelftestReport> {
  if (wanted.length === 0) return report
  const start = performance.now()
  const { results, skipped } = await checkExports(wanted, signal)
  if (skipped !== undefined) {
    log(`exports: not run: ${skipped}\n`)
    return report
  }
  const failures = results.filter(({ passed }) => !passed)
  const seconds = (performance.now() - start) / 1000
  const group = { name: 'exports', passed: results.length - failures.length, failures, details: results, seconds }
  log(describeGroup(group))
  const { passed, failed, groups } = report
  return { passed: passed + group.passed, failed: failed + failures.length, groups: [...groups, group] }
}

export const selftestCommand = (context: () => CliContext) =>
  new Command('selftest')
    .description('verify the kernels, matmuls and models on a device of this machine')
    .addOption(deviceOption())
    .addOption(new Option('--dtype <dtype>', 'storage type of the models; all by default').choices(dtypes))
    .option('--model <dir>', 'a model folder with golden.safetensors')
    .option('--golden <dir...>', 'folders written by test/peers/make_bert.py')
    .option('--exports <dir>', 'exports to run as ops of PyTorch, where it is; those of the bundle by default')
    .option('--filter <regexp>', 'only checks whose name matches')
    .option('--json', 'print the report as JSON; the closing line goes to stderr')
    .action(async (options) => {
      const report = await runSelftest(options, context())
      if (options.json) {
        context().out(json(report))
        context().log(summaryLine(report))
      } else context().out(summaryLine(report))
      if (report.failed > 0) process.exitCode = 1
    })
