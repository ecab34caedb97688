/** `heddle check`: the project's own ops, graphs, plans and programs against their bodies on a device. Compiles what it checks, and nothing else. */
import { Command, Option } from '@commander-js/extra-typings'
import { type CheckGroup, type CheckReport, checkProject } from '../verify/check/check.js'
import type { GpuSources } from '../verify/check/gpu_sources.js'
import { type CheckedOptions, checkSetup } from './check_setup.js'
import { type CliContext, json } from './context.js'
import { deviceOption, dtypes } from './opening.js'
import { pattern } from './options.js'

export interface CheckVerbOptions extends CheckedOptions {
  readonly plan?: string | undefined
  /** A regular expression over what is printed: `rms_norm__f16`, `layer my-plan f32`. */
  readonly filter?: string | undefined
  readonly thorough?: boolean | undefined
  /** Compiles every source with nvcc, or none; without it, one of each op where the process allows and nvcc is. */
  readonly nvcc?: boolean | undefined
  /** A fifth of the usual cases. */
  readonly brief?: boolean | undefined
}

/** Failures of one group that are printed; the count says how many there were. */
const shownFailures = 5

const words: Readonly<Record<CheckGroup['against'], string>> = { body: 'its body', ir: 'what was read of it', nodes: 'its nodes' }

/** What `heddle repro` has to be told to run a failing case of a kernel as this check did. Graphs and programs have no such command. */
function reproOf(
  { op, failures, unrun }: CheckGroup,
  { device, generated, specs = 'specs' }: CheckVerbOptions,
): readonly string[] {
  const [failure] = failures
  if (op === undefined || failure === undefined || unrun === true) return []
  const words = ['npx heddle repro', op, `--case "${failure.name}"`]
  if (device !== undefined) words.push(`--device ${device}`)
  if (generated === true) words.push('--generated')
  if (specs !== 'specs') words.push(`--specs ${specs}`)
  return [`  a folder that shows it: ${words.join(' ')}`]
}

/** One line a kernel, graph or program, one more for each failure, and what writes the first as a folder. */
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
 * @param names of ops, derived kernels, graphs and programs; everything without any
 * @throws usage `check.selection` where nothing is selected; usage `check.filter`; errors of the front end and of plans; environment for a missing
 * device, addon or compiler
 */
export async function check(names: readonly string[], options: CheckVerbOptions, context: CliContext): Promise<CheckReport> {
  const filter = pattern(options.filter, 'check.filter')
  const { plan, thorough, brief } = options
  const report = await checkProject({
    ...(await checkSetup(options, context)),
    names,
    plan,
    filter,
    thorough,
    brief,
    gpuBuild: options.nvcc === undefined ? (context.asksNvcc === true ? 'brief' : undefined) : options.nvcc ? 'all' : undefined,
    onGroup: (group) => context.log(describeCheck(group, options)),
  })
  for (const { name, reason } of report.apart)
    context.log(`left ${name}: ${reason}, so that its kernels were held and it was not as a whole\n`)
  if (report.gpu !== undefined) context.log(describeGpu(report.gpu))
  return report
}

/** What nvcc said. */
export function describeGpu({ nvcc, compiled, sources, findings }: GpuSources): string {
  if (findings.length > 0) return `FAIL nvcc ${nvcc}, sm_90: ${findings.join('\n')}\n`
  const rest = compiled < sources ? `; --nvcc compiles all ${sources}` : ''
  return `ok   nvcc ${nvcc}, sm_90: ${compiled} sources without a warning or a spill${rest}\n`
}

export const checkCommand = (context: () => CliContext) =>
  new Command('check')
    .description("hold the project's own ops, graphs, plans and programs against their bodies on a device")
    .argument('[names...]', 'ops, kernels that plans derive, graphs and programs; everything without any')
    .addOption(deviceOption())
    .addOption(new Option('--dtype <dtype>', 'storage type; all that are declared by default').choices(dtypes))
    .option('--plan <name>', 'graphs and programs under this plan only')
    .option('--filter <regexp>', 'only kernels, graphs and programs whose name matches')
    .option('--thorough', 'every size that selftest tries')
    .option('--generated', 'check the text that lies in generated/, as it is there, whoever wrote it')
    .option('--nvcc', 'compile every source with nvcc, too (default on the CPU device: one of each op, where nvcc is)')
    .option('--no-nvcc', 'compile nothing with nvcc')
    .option('--specs <dir>', 'folder of the spec modules', 'specs')
    .option('--json', 'print the report as JSON')
    .action(async (names, options) => {
      const report = await check(names, options, context())
      const rest = report.untried > 0 ? `, ${report.untried} not tried` : ''
      const closing = `${report.passed} passed, ${report.failed} failed${rest}\n`
      if (options.json) {
        context().out(json(report))
        context().log(closing)
      } else context().out(closing)
      // What lacks a fact is for its author to mend, like a spec that is refused.
      if (report.failed > 0) process.exitCode = 1
      else if (report.untried > 0) process.exitCode = 2
    })
