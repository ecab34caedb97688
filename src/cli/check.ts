/** `heddle check`: checks the project's own ops, graphs, plans and programs against their bodies on a device. Compiles only those. */
import { resolve } from 'node:path'
import { Command, Option } from '@commander-js/extra-typings'
import { shellWord } from '../runtime/remote/command.js'
import { type CheckGroup, type CheckReport, checkProject } from '../verify/check/check.js'
import type { GpuSources } from '../verify/check/gpu_sources.js'
import { type CheckedOptions, checkSetup } from './check_setup.js'
import { type CliContext, json } from './context.js'
import { readResult } from './job_result.js'
import { machinesOption, onEach } from './machines.js'
import { deviceOption, dtypes, readOption } from './opening.js'
import { pattern } from './options.js'

export interface CheckVerbOptions extends CheckedOptions {
  readonly plan?: string | undefined
  /** A regular expression over printed names: `rms_norm__f16`, `layer my-plan f32`. */
  readonly filter?: string | undefined
  readonly thorough?: boolean | undefined
  /** Compiles every source with nvcc, or none; if undefined, one per op, where the process allows it and nvcc is installed. */
  readonly nvcc?: boolean | undefined
  /** A fifth of the usual cases. */
  readonly brief?: boolean | undefined
}

/** Number of failures printed per group; the count includes all. */
const shownFailures = 5

const words: Readonly<Record<CheckGroup['against'], string>> = { body: 'its body', ir: 'its IR', nodes: 'its nodes' }

/** Command line of `heddle repro` for a failing case of a kernel. Graphs and programs have none, and `js` runs no source that could be written. */
function reproOf(
  { op, failures, unrun }: CheckGroup,
  { device, on, generated, specs = 'specs' }: CheckVerbOptions,
): readonly string[] {
  const [failure] = failures
  if (op === undefined || failure === undefined || unrun === true || device === 'js') return []
  const words = ['npx heddle repro', op, `--case "${failure.name}"`]
  if (device !== undefined) words.push(`--device ${device}`)
  if (on !== undefined) words.push(`--on ${shellWord(on)}`)
  if (generated === true) words.push('--generated')
  if (specs !== 'specs') words.push(`--specs ${specs}`)
  return [`  reproduce it in a folder: ${words.join(' ')}`]
}

/** One line per kernel, graph or program, one per failure, and a command that writes the first as a folder. */
export function describeCheck(group: CheckGroup, options: CheckVerbOptions = {}): string {
  const { name, against, passed, failures, notes: [note] = [], unrun, untried, seconds } = group
  if (untried !== undefined) return `none ${name}: not tried (${seconds.toFixed(1)} s)\n  ${untried}\n`
  const differing = unrun === true ? 'not run' : `${failures.length} of ${passed + failures.length} differ`
  const count = failures.length === 0 ? `${passed} equal to ${words[against]}` : differing
  const lines = [`${failures.length === 0 ? 'ok  ' : 'FAIL'} ${name}: ${count} (${seconds.toFixed(1)} s)`]
  for (const failure of failures.slice(0, shownFailures)) lines.push(`  ${failure.name}: ${failure.detail}`)
  if (failures.length > shownFailures) lines.push(`  and ${failures.length - shownFailures} more`)
  if (note !== undefined) lines.push(`  not judged: ${note.name}: ${note.note}`)
  lines.push(...reproOf(group, options))
  return `${lines.join('\n')}\n`
}

/**
 * @param names of ops, derived kernels, graphs and programs; empty for everything
 * @throws usage `check.selection` if nothing is selected; usage `check.filter`; errors of the front end and of plans; environment for a missing
 * device, addon or compiler
 */
export async function check(names: readonly string[], options: CheckVerbOptions, context: CliContext): Promise<CheckReport> {
  const filter = pattern(options.filter, 'check.filter')
  const { plan, thorough, brief } = options
  const report = await checkProject({
    ...(await checkSetup(options, context, 'check')),
    names,
    plan,
    filter,
    thorough,
    brief,
    gpuBuild: options.nvcc === undefined ? (context.asksNvcc === true ? 'brief' : undefined) : options.nvcc ? 'all' : undefined,
    onGroup: (group) => context.log(describeCheck(group, options)),
  })
  for (const { name, reason } of report.apart)
    context.log(`left ${name}: ${reason}; its kernels were checked, but not the whole\n`)
  if (report.gpu !== undefined) context.log(describeGpu(report.gpu))
  return report
}

/** The report of a packed check, printed as that of one that runs here. @throws usage `result.*` */
async function readCheck(file: string, { root, log }: CliContext): Promise<CheckReport> {
  const { result } = await readResult(resolve(root, file), 'check')
  const report = result as CheckReport
  for (const group of report.groups) log(describeCheck(group))
  if (report.gpu !== undefined) log(describeGpu(report.gpu))
  return report
}

/** The scope of a check on `js`, which is a part of what others cover. */
const onJs = ({ device }: Pick<CheckReport, 'device'>): string =>
  device.kind === 'js' ? ': on js, which compares the lowered IR with the body; no device ran generated source' : ''

/** Summary of the compilation with nvcc. */
export function describeGpu({ nvcc, compiled, sources, findings }: GpuSources): string {
  if (findings.length > 0) return `FAIL nvcc ${nvcc}, sm_90: ${findings.join('\n')}\n`
  const rest = compiled < sources ? `; --nvcc compiles all ${sources}` : ''
  return `ok   nvcc ${nvcc}, sm_90: ${compiled} sources without a warning or a spill${rest}\n`
}

const closingOf = (report: CheckReport): string => {
  const rest = report.untried > 0 ? `, ${report.untried} not tried` : ''
  return `${report.passed} passed, ${report.failed} failed${rest}${onJs(report)}\n`
}

/** A missing fact is a usage error, like a refused spec: its author must add it. */
const exitCodeOf = ({ failed, untried }: CheckReport): 0 | 1 | 2 => (failed > 0 ? 1 : untried > 0 ? 2 : 0)

/** Checks on several machines, with a closing line for each. A failed check counts more than a machine that failed. */
async function checkMachines(
  names: readonly string[],
  options: Omit<CheckVerbOptions, 'on'> & { readonly on: readonly string[] },
  asJson: boolean,
  context: CliContext,
): Promise<void> {
  const { machines, exitCode } = await onEach(options.on, context, (on) => check(names, { ...options, on }, context))
  const codes = machines.map(({ result }) => (result === undefined ? 0 : exitCodeOf(result)))
  if (asJson) context.out(json({ machines }))
  else
    for (const { on, result, error } of machines)
      context.out(`${on}: ${result === undefined ? `failed, ${error?.code}\n` : closingOf(result)}`)
  const worst = codes.includes(1) ? 1 : exitCode === 0 && codes.includes(2) ? 2 : exitCode
  if (worst !== 0) process.exitCode = worst
}

export const checkCommand = (context: () => CliContext) =>
  new Command('check')
    .description("check the project's own ops, graphs, plans and programs against their bodies on a device")
    .argument('[names...]', 'ops, kernels that plans derive, graphs and programs; default: everything')
    .addOption(deviceOption())
    .addOption(machinesOption())
    .addOption(new Option('--dtype <dtype>', 'storage type; default: all that are declared').choices(dtypes))
    .option('--plan <name>', 'graphs and programs under this plan only')
    .option('--filter <regexp>', 'only kernels, graphs and programs whose name matches')
    .option('--thorough', 'try every size that selftest tries')
    .option('--generated', 'check the source in generated/ as it is, even if edited by hand')
    .option('--nvcc', 'also compile every source with nvcc (default on the CPU device: one per op, if nvcc is installed)')
    .option('--no-nvcc', 'compile nothing with nvcc')
    .option('--specs <dir>', 'folder of the spec modules', 'specs')
    .addOption(readOption())
    .option('--json', 'print the report as JSON')
    .action(async (names, options) => {
      const { read, json: asJson = false } = options
      const [on, ...others] = options.on ?? []
      if (on !== undefined && others.length > 0) {
        await checkMachines(names, { ...options, on: [on, ...others] }, asJson, context())
        return
      }
      const report = await (read === undefined ? check(names, { ...options, on }, context()) : readCheck(read, context()))
      if (asJson) {
        context().out(json(report))
        context().log(closingOf(report))
      } else context().out(closingOf(report))
      const exitCode = exitCodeOf(report)
      if (exitCode !== 0) process.exitCode = exitCode
    })
