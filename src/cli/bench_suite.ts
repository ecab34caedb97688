/** `heddle bench suite`: runs a declared suite of plans, shapes and storage types, prints one table over all, and saves it in a history. */
import { Command, Option } from '@commander-js/extra-typings'
import type { SuiteResult } from '../bench/suite/result.js'
import { timeSuite } from '../bench/suite/run.js'
import { suiteCsv, suiteMarkdown, suiteText } from '../bench/suite/table.js'
import { costDevices } from '../cost/device.js'
import { environmentError, usageError } from '../errors.js'
import type { SuiteDecl } from '../lang/suite.js'
import { openKernels } from '../runtime/open.js'
import { installation, searchManifests } from '../toolchain/index.js'
import { deviceStage, modelStage } from './bench_stages.js'
import { type CliContext, json } from './context.js'
import { type DeviceName, deviceOption, openOptions } from './opening.js'
import { positive } from './options.js'
import { searchPath } from './search_path.js'

export interface BenchSuiteOptions {
  readonly device?: DeviceName | undefined
  /** Device of the cost model whose prices stand for times. */
  readonly predicted?: string | undefined
  readonly repeats?: number | undefined
  readonly specs?: string | undefined
}

const formats = ['table', 'markdown', 'csv', 'json'] as const

/**
 * Results of the suites that a file exports.
 * @throws usage `suite.*`, `bench.*`, `plan.unknown`, `graph.dim`; environment for a missing device or tool
 */
export async function runSuites(file: string, options: BenchSuiteOptions, context: CliContext): Promise<readonly SuiteResult[]> {
  const { root } = context
  const { device: name, predicted, repeats, specs } = options
  if (predicted !== undefined && name !== undefined)
    throw usageError('suite.price', '--predicted takes no device', { hint: 'leave --device or --predicted out' })
  if (installation(root).portable)
    throw environmentError('portable.frontend', 'the portable bundle runs no suites', { hint: 'use the npm package' })
  const { readSuites } = await import('../frontend/searched.js')
  const declared = await readSuites(root, file)
  const suites = declared.map((suite): SuiteDecl => (repeats === undefined ? suite : { ...suite, repeats }))
  const path = await searchPath(root, specs)
  const results: SuiteResult[] = []
  if (predicted !== undefined) {
    const { manifest } = await searchManifests(root)
    for (const suite of suites)
      results.push(await timeSuite(suite, file, await modelStage(suite, predicted, manifest, path), context))
    return results
  }
  const opened = await openKernels(name, openOptions(context))
  try {
    for (const suite of suites)
      results.push(await timeSuite(suite, file, await deviceStage(suite, opened, path, context), context))
    return results
  } finally {
    opened.device.close()
  }
}

/** Results in a format. */
function printed(results: readonly SuiteResult[], format: (typeof formats)[number]): string {
  if (format === 'json') return json(results)
  if (format === 'csv') return suiteCsv(results)
  return results.map(format === 'markdown' ? suiteMarkdown : suiteText).join('\n')
}

export const suiteCommand = (context: () => CliContext) =>
  new Command('suite')
    .description('run a declared suite: plans x shapes x storage types in one table')
    .argument('[file]', 'a module that exports suites, as defineSuite returns', 'bench.ts')
    .addOption(deviceOption())
    .addOption(
      new Option('--predicted <device>', 'prices of the cost model of a device instead of times; needs no device').choices(
        costDevices,
      ),
    )
    .option('--repeats <count>', 'timed replays of each plan, shape and type, instead of those of the suite', positive)
    .option('--specs <dir>', 'folder of the spec modules', 'specs')
    .addOption(new Option('--format <format>', 'of the results').choices(formats).default('table' as const))
    .option('--json', 'the same as --format json')
    .action(async (file, options) => {
      const results = await runSuites(file, options, context())
      context().out(printed(results, options.json === true ? 'json' : options.format))
    })
