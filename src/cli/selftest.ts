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
import { compiledDeviceOption, type DeviceName, dtypes, openOptions } from './pipeline.js'

export interface SelftestOptions {
  readonly device?: DeviceName | undefined
  readonly dtype?: (typeof dtypes)[number] | undefined
  /** A folder with a model and its goldens, in addition to those of `golden`. */
  readonly model?: string | undefined
  /** Folders that `test/peers/make_bert.py` wrote. */
  readonly golden?: readonly string[] | undefined
  /** Folders of exports for PyTorch, as test/peers/make_exports.ts writes them; those of the bundle by default. */
  readonly exports?: string | undefined
  /** A regular expression over check names. */
  readonly filter?: string | undefined
}

/** Number of failures printed per group; the count includes all. */
const shownFailures = 10

function modelFolder(path: string): { name: string; dir: string } {
  if (!existsSync(join(path, 'config.json')))
    throw usageError('selftest.model', `${path} is not a model folder: it has no config.json`)
  return { name: basename(path), dir: path }
}

/** One line per group, and one per failure or, for models, per result. */
export function describeGroup({ name, passed, failures, details, seconds }: GroupReport): string {
  const lines = [`${name}: ${passed} passed, ${failures.length} failed (${seconds.toFixed(1)} s)`]
  const worth = details.length > 0 ? details : failures.slice(0, shownFailures)
  for (const result of worth) lines.push(`  ${result.passed ? 'ok  ' : 'FAIL'} ${result.name}: ${result.detail}`)
  if (worth === details || failures.length <= shownFailures) return `${lines.join('\n')}\n`
  return `${lines.join('\n')}\n  and ${failures.length - shownFailures} more\n`
}

/** Closing line, in the form that CI expects. */
export const summaryLine = ({ passed, failed }: SelftestReport): string => `${passed} passed, ${failed} failed\n`

/** @throws usage `selftest.*`, `manifest.*`; environment for a missing device, addon or compiler */
export async function runSelftest(options: SelftestOptions, context: CliContext): Promise<SelftestReport> {
  const { root, signal } = context
  const filter = pattern(options.filter, 'selftest.filter')
  const models = [...(options.model === undefined ? [] : [options.model]), ...(options.golden ?? [])].map((path) =>
    modelFolder(resolve(root, path)),
  )
  const exports = await exportsOf(options.exports, filter, root)
  const { device, library, manifest } = await openKernels(options.device, { ...openOptions(context), compiled: true })
  // Excludes a project's own ops, which `heddle check` covers: here they would be checked against the shipped body of the same name.
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

/** The given exports, or those of the bundle, restricted by the filter. @throws usage `selftest.exports` */
async function exportsOf(exports: string | undefined, filter: RegExp | undefined, root: string): Promise<readonly string[]> {
  const own = installation(root).portable ? await exportFolders(join(packageRoot(), 'exports')) : []
  const folders = exports === undefined ? own : await expectExports(resolve(root, exports))
  return folders.filter((folder) => filter?.test(`export ${basename(folder)}`) ?? true)
}

/** Appends the results of exports to a report, if there are any and PyTorch is installed. */
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
    .addOption(compiledDeviceOption())
    .addOption(new Option('--dtype <dtype>', 'storage type of the models; default: all').choices(dtypes))
    .option('--model <dir>', 'a model folder with golden.safetensors')
    .option('--golden <dir...>', 'folders written by test/peers/make_bert.py')
    .option('--exports <dir>', 'exports to run as PyTorch ops, if it is installed; default: exports of the bundle')
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
