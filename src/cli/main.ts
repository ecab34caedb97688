/** The `heddle` command: assembles the verbs, and turns what they throw into an exit code. */
import { Command, CommanderError, type CommandUnknownOpts } from '@commander-js/extra-typings'
import { benchCommand } from './bench.js'
import { buildCommand } from './build.js'
import { bundleCommand } from './bundle.js'
import { calibrateCommand } from './calibrate.js'
import { checkCommand } from './check.js'
import { cleanCommand } from './clean.js'
import { completeCommand, completionCommand } from './completion.js'
import type { CliContext } from './context.js'
import { demoCommand } from './demo.js'
import { doctorCommand } from './doctor.js'
import { explainCommand } from './explain.js'
import { exploreCommand } from './explore.js'
import { exportCommand } from './export.js'
import { describeFailure, failureJson } from './failure.js'
import { genCommand } from './gen.js'
import { closingHelp, helpCommand } from './help.js'
import { initCommand } from './init.js'
import { inspectCommand } from './inspect.js'
import { useNativeOf } from './pipeline.js'
import { planCommand } from './plan.js'
import { reproCommand } from './repro.js'
import { runCommand } from './run.js'
import { scoreCommand } from './score.js'
import { selftestCommand } from './selftest.js'
import { tuneCommand } from './tune.js'
import { version } from './version.js'
import { watchCommand } from './watch.js'

/** Where a call of `main` writes and works; the process by default. */
export interface CliHost {
  readonly root: string
  out(text: string): void
  log(text: string): void
}

const processHost: CliHost = {
  root: process.cwd(),
  out: (text) => void process.stdout.write(text),
  log: (text) => void process.stderr.write(text),
}

type Verb = (context: () => CliContext) => CommandUnknownOpts

/** Verbs by what one is about, as the help shows them. */
const groups: readonly (readonly [string, readonly Verb[]])[] = [
  ['Write kernels:', [initCommand, genCommand, watchCommand, checkCommand, reproCommand, explainCommand]],
  ['Look and measure:', [inspectCommand, planCommand, exploreCommand, benchCommand, tuneCommand]],
  ['Run models:', [demoCommand, runCommand, scoreCommand, calibrateCommand]],
  ['Ship:', [buildCommand, exportCommand, bundleCommand]],
  ['The machine:', [doctorCommand, selftestCommand, cleanCommand]],
]

function program(context: () => CliContext, host: CliHost): CommandUnknownOpts {
  const root = new Command('heddle')
    .description('compile transformer kernels from TypeScript to CUDA, and run models with them')
    .version(version)
    // Options behind a verb are that verb's, also where another has one of the name.
    .enablePositionalOptions()
  for (const [group, verbs] of groups) for (const verb of verbs) root.addCommand(verb(context).helpGroup(group))
  for (const verb of [completionCommand, helpCommand]) root.addCommand(verb(root).helpGroup('The machine:'))
  root.addCommand(completeCommand(root), { hidden: true }).addHelpText('after', closingHelp)
  configure(root, host)
  return root
}

/** Options and manners that every command has: nothing ends the process, and refusals look like those of verbs. */
function configure(command: CommandUnknownOpts, host: CliHost): void {
  command
    .option('--verbose', 'print the stack of errors')
    .helpCommand(false)
    .showHelpAfterError('(see --help)')
    .exitOverride()
    .configureOutput({
      writeOut: host.out,
      writeErr: host.log,
      outputError: (text, write) => write(text.replace(/^error: /, 'error[cli.usage]: ')),
    })
  for (const nested of command.commands) configure(nested, host)
}

/** Runs one command line (without `node` and the script) and returns its exit code. Never throws. */
export async function main(argv: readonly string[], host: CliHost = processHost): Promise<number> {
  const cancel = new AbortController()
  // The first Ctrl-C lets verbs end their children and remove half-made files; the second one does not wait.
  const interrupt = () => (cancel.signal.aborted ? process.exit(130) : cancel.abort(new Error('cancelled')))
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt)
  const root = program(() => context, host)
  const verbose = argv.includes('--verbose')
  const context: CliContext = { root: host.root, signal: cancel.signal, verbose, out: host.out, log: host.log }
  useNativeOf(host.root)
  try {
    process.exitCode = undefined
    await root.parseAsync(argv, { from: 'user' })
    return cancel.signal.aborted ? 130 : Number(process.exitCode ?? 0)
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0
    const cancelled = cancel.signal.aborted
    if (argv.includes('--json')) host.out(failureJson(error, { cancelled }))
    // The parser has said what is wrong already.
    if (error instanceof CommanderError) return 2
    const failure = describeFailure(error, { verbose, cancelled })
    host.log(failure.text)
    return failure.exitCode
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt)
  }
}
