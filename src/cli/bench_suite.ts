/** `heddle bench suite`: runs a declared suite of plans, shapes and storage types, prints one table over all, and saves it in a history. */
import { resolve } from 'node:path'
import { Command, Option } from '@commander-js/extra-typings'
import { appendHistory, entryOf, readHistory } from '../bench/history/entry.js'
import { provenanceOf } from '../bench/history/provenance.js'
import type { SuiteResult } from '../bench/suite/result.js'
import { timeSuite } from '../bench/suite/run.js'
import { suiteCsv, suiteMarkdown, suiteText } from '../bench/suite/table.js'
import { costDevices } from '../cost/device.js'
import { environmentError, usageError } from '../errors.js'
import type { SuiteDecl } from '../lang/suite.js'
import { nameIn } from '../path_names.js'
import type { NativeDeviceInfo } from '../runtime/native.js'
import { openKernels } from '../runtime/open.js'
import { installation, searchManifests } from '../toolchain/index.js'
import { deviceStage, modelStage } from './bench_stages.js'
import { type CliContext, json } from './context.js'
import { readResult } from './job_result.js'
import { expectOneMachine, machineLines, machinesOption, machinesTable, onEach } from './machines.js'
import { type DeviceName, deviceOption, openOptions, readOption } from './opening.js'
import { positive } from './options.js'
import { searchPath } from './search_path.js'
import { version } from './version.js'

export interface BenchSuiteOptions {
  readonly device?: DeviceName | undefined
  /** Machine of the device: a name of ~/.ssh/config, or a command prefix. */
  readonly on?: string | undefined
  /** Device of the cost model whose prices stand for times. */
  readonly predicted?: string | undefined
  readonly repeats?: number | undefined
  readonly specs?: string | undefined
  /** A history to add the runs to; true for the usual file. */
  readonly save?: string | true | undefined
}

/** File of a project's history, relative to its folder. */
export const usualHistory = 'bench-history.jsonl'

const formats = ['table', 'markdown', 'csv', 'json'] as const

/**
 * Results of the suites that a file exports.
 * @throws usage `suite.*`, `bench.*`, `plan.unknown`, `graph.dim`; environment for a missing device or tool
 */
export async function runSuites(file: string, options: BenchSuiteOptions, context: CliContext): Promise<readonly SuiteResult[]> {
  const { root } = context
  const { device: name, on, predicted, repeats, specs } = options
  if (predicted !== undefined && (name ?? on) !== undefined)
    throw usageError('suite.price', '--predicted takes no device', { hint: 'leave --device and --on, or --predicted out' })
  if (installation(root).portable)
    throw environmentError('portable.frontend', 'the portable bundle runs no suites', { hint: 'use the npm package' })
  const { readSuites } = await import('../frontend/searched.js')
  const declared = await readSuites(root, file)
  const suites = declared.map((suite): SuiteDecl => (repeats === undefined ? suite : { ...suite, repeats }))
  const path = await searchPath(root, specs)
  const save = await saving(options.save, context)
  if (predicted !== undefined) {
    const { manifest } = await searchManifests(root)
    const results: SuiteResult[] = []
    for (const suite of suites)
      results.push(await timeSuite(suite, file, await modelStage(suite, predicted, manifest, path), context))
    await save(results, undefined)
    return results
  }
  const opened = await openKernels(name, openOptions(context, { on, who: 'bench' }))
  try {
    const results: SuiteResult[] = []
    for (const suite of suites)
      results.push(await timeSuite(suite, file, await deviceStage(suite, opened, path, context), context))
    await save(results, opened.device.info())
    return results
  } finally {
    opened.device.close()
  }
}

type Save = (results: readonly SuiteResult[], info: NativeDeviceInfo | undefined) => Promise<void>

/** Results of packed suites, saved as those that run here. @throws usage `result.*`, `suite.history` */
export async function readSuiteResults(
  file: string,
  { save }: Pick<BenchSuiteOptions, 'save'>,
  { root, log }: CliContext,
): Promise<readonly SuiteResult[]> {
  const { result, about } = await readResult(resolve(root, file), 'bench suite')
  const results = result as readonly SuiteResult[]
  if (save !== undefined) {
    const path = resolve(root, save === true ? usualHistory : save)
    await appendHistory(
      path,
      results.map((each) => entryOf(each, about)),
    )
    log(`saved: ${path}\n`)
  }
  return results
}

/** Returns the writer of a history, which is read first: nothing is timed in vain. @throws usage `suite.history` */
async function saving(save: BenchSuiteOptions['save'], { root, signal, log }: CliContext): Promise<Save> {
  if (save === undefined) return async () => undefined
  const path = resolve(root, save === true ? usualHistory : save)
  await readHistory(path)
  return async (results, info) => {
    const saved = nameIn(root, path)
    const about = await provenanceOf({ root, signal, version, saved, info })
    await appendHistory(
      path,
      results.map((result) => entryOf(result, about)),
    )
    log(`saved: ${path}\n`)
  }
}

/** Results in a format. */
function printed(results: readonly SuiteResult[], format: (typeof formats)[number]): string {
  if (format === 'json') return json(results)
  if (format === 'csv') return suiteCsv(results)
  return results.map(format === 'markdown' ? suiteMarkdown : suiteText).join('\n')
}

/** Runs suites on several machines, and prints a table per suite with a column for each. @throws usage `remote.several`; errors of `runSuites` */
async function suiteMachines(
  file: string,
  options: Omit<BenchSuiteOptions, 'on'> & { readonly on: readonly string[]; readonly format: string; readonly json?: true },
  context: CliContext,
): Promise<void> {
  const isJson = options.json === true || options.format === 'json'
  expectOneMachine(options.on, { format: isJson || options.format === 'table' ? undefined : options.format })
  const { machines, exitCode } = await onEach(options.on, context, (on) => runSuites(file, { ...options, on }, context))
  if (exitCode !== 0) process.exitCode = exitCode
  if (isJson) {
    context.out(json({ machines }))
    return
  }
  const names = new Set(machines.flatMap(({ result = [] }) => result.map(({ suite }) => suite)))
  for (const name of names) {
    const cellsOf = (results: readonly SuiteResult[] = []) => results.find(({ suite }) => suite === name)?.cells ?? []
    context.out(`${name}\n${machinesTable(machines.map(({ on, result }) => ({ on, result: cellsOf(result) })))}`)
  }
  const lines = machines.map(({ result, ...rest }) => ({ ...rest, ...(result?.[0] && { result: result[0] }) }))
  context.out(machineLines(lines))
}

export const suiteCommand = (context: () => CliContext) =>
  new Command('suite')
    .description('run a declared suite: plans x shapes x storage types in one table')
    .argument('[file]', 'a module that exports suites, as defineSuite returns', 'bench.ts')
    .addOption(deviceOption())
    .addOption(machinesOption())
    .addOption(
      new Option('--predicted <device>', 'prices of the cost model of a device instead of times; needs no device').choices(
        costDevices,
      ),
    )
    .option('--repeats <count>', 'timed replays of each plan, shape and type, instead of those of the suite', positive)
    .option('--specs <dir>', 'folder of the spec modules', 'specs')
    .addOption(readOption().conflicts('predicted'))
    .option('--save [file]', `add the runs to a history; default: ${usualHistory}`)
    .addOption(new Option('--format <format>', 'of the results').choices(formats).default('table' as const))
    .option('--json', 'the same as --format json')
    .action(async (file, options) => {
      const { read } = options
      const [on, ...others] = options.on ?? []
      if (on !== undefined && others.length > 0) {
        await suiteMachines(file, { ...options, on: [on, ...others] }, context())
        return
      }
      const results = await (read === undefined
        ? runSuites(file, { ...options, on }, context())
        : readSuiteResults(read, options, context()))
      context().out(printed(results, options.json === true ? 'json' : options.format))
    })
