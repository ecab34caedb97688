/** The `heddle` command: assembles the verbs, and converts their errors to an exit code. */
import { Command, CommanderError, type CommandUnknownOpts } from '@commander-js/extra-typings'
import { HeddleError } from '../errors.js'
import { installation } from '../toolchain/installation.js'
import { completeCommand, completionCommand, type Shell, scriptOf } from './completion.js'
import type { CliContext } from './context.js'
import { examplesHelp } from './examples.js'
import { describeFailure, failureJson } from './failure.js'
import { finishing } from './finishing.js'
import { closingHelp, helpCommand } from './help.js'
import { version } from './version.js'
import { isOfSpecs, vouch } from './vouch.js'

/** Host of a call of `main`: its folder and output streams; the process by default. */
export interface CliHost {
  readonly root: string
  /** True if verbs run an installed nvcc by default. */
  readonly asksNvcc?: boolean
  out(text: string): void
  log(text: string): void
}

const processHost: CliHost = {
  root: process.cwd(),
  asksNvcc: true,
  out: (text) => void process.stdout.write(text),
  log: (text) => void process.stderr.write(text),
}

type Verb = (context: () => CliContext) => CommandUnknownOpts

/** Verbs by group, in the order of the printed help. Each is loaded on demand: loading all takes longer than a small project's `gen`. */
const groups: Readonly<Record<string, Readonly<Record<string, () => Promise<Verb>>>>> = {
  'Write kernels:': {
    init: async () => (await import('./init.js')).initCommand,
    gen: async () => (await import('./gen.js')).genCommand,
    dev: async () => (await import('./dev.js')).devCommand,
    watch: async () => (await import('./watch.js')).watchCommand,
    check: async () => (await import('./check.js')).checkCommand,
    repro: async () => (await import('./repro.js')).reproCommand,
    explain: async () => (await import('./explain.js')).explainCommand,
  },
  'Look and measure:': {
    inspect: async () => (await import('./inspect.js')).inspectCommand,
    plan: async () => (await import('./plan.js')).planCommand,
    explore: async () => (await import('./explore.js')).exploreCommand,
    bench: async () => (await import('./bench.js')).benchCommand,
    search: async () => (await import('./search.js')).searchCommand,
    tune: async () => (await import('./tune.js')).tuneCommand,
  },
  'Run models:': {
    demo: async () => (await import('./demo.js')).demoCommand,
    run: async () => (await import('./run.js')).runCommand,
    score: async () => (await import('./score.js')).scoreCommand,
    calibrate: async () => (await import('./calibrate.js')).calibrateCommand,
  },
  'Ship:': {
    build: async () => (await import('./build.js')).buildCommand,
    export: async () => (await import('./export.js')).exportCommand,
    bundle: async () => (await import('./bundle.js')).bundleCommand,
    pack: async () => (await import('./pack.js')).packCommand,
  },
  'The machine:': {
    config: async () => (await import('./config.js')).configCommand,
    doctor: async () => (await import('./doctor.js')).doctorCommand,
    selftest: async () => (await import('./selftest.js')).selftestCommand,
    clean: async () => (await import('./clean.js')).cleanCommand,
  },
}

/**
 * Names of the verbs that a command line needs: the named one, since no option of `heddle` itself has a value; none for the
 * version; all for help, completion and unknown verbs.
 */
function verbsOf(argv: readonly string[]): readonly string[] {
  const known = Object.values(groups).flatMap((verbs) => Object.keys(verbs))
  const first = argv.find((word) => !word.startsWith('-'))
  if (first === undefined && (argv[0] === '--version' || argv[0] === '-V')) return []
  return first !== undefined && known.includes(first) ? [first] : known
}

async function program(argv: readonly string[], context: () => CliContext, host: CliHost): Promise<CommandUnknownOpts> {
  const root = new Command('heddle')
    .description('compile transformer kernels from TypeScript to CUDA, and run models with them')
    .version(version)
    // Options after a verb belong to that verb, even if another has one of the same name.
    .enablePositionalOptions()
  const wanted = verbsOf(argv)
  for (const [group, verbs] of Object.entries(groups)) {
    for (const [name, load] of Object.entries(verbs)) {
      if (wanted.includes(name)) root.addCommand((await load())(context).helpGroup(group))
    }
  }
  for (const verb of [completionCommand(root, context), helpCommand(root)]) root.addCommand(verb.helpGroup('The machine:'))
  root.addCommand(completeCommand(root), { hidden: true }).addHelpText('after', closingHelp)
  root.hook('preAction', async (_, action) => {
    const { generated, for: model, specs } = action.opts() as Readonly<Record<string, unknown>>
    // `--generated` and `--for` do not use the specs.
    if (generated === true || model !== undefined || !isOfSpecs(wordsOf(action))) return
    await vouch(context(), typeof specs === 'string' ? specs : undefined)
  })
  configure(root, host)
  return root
}

/** Returns the script by which a shell completes verbs and options. @throws usage `cli.usage` for a shell without one */
export async function completion(shell: Shell): Promise<string> {
  const { root, out, log } = processHost
  const context: CliContext = { root, signal: new AbortController().signal, verbose: false, out, log }
  return scriptOf(await program(['completion'], () => context, processHost), shell)
}

/** Words that name a command after `heddle`. */
const wordsOf = (command: CommandUnknownOpts): string[] =>
  command.parent === null ? [] : [...wordsOf(command.parent), command.name()]

/** Applies common options and behaviour to a command: it never ends the process, and its usage errors look like those of verbs. */
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
  const closing = examplesHelp(wordsOf(command).join(' '))
  if (closing !== '') command.addHelpText('after', closing)
  for (const nested of command.commands) configure(nested, host)
}

/** Runs one command line (without `node` and the script) and returns its exit code. Never throws. */
export async function main(argv: readonly string[], host: CliHost = processHost): Promise<number> {
  const cancel = new AbortController()
  // The first Ctrl-C lets verbs end their child processes and remove partial files; the second one exits at once.
  const interrupt = () => (cancel.signal.aborted ? process.exit(130) : cancel.abort(new Error('cancelled')))
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt)
  const verbose = argv.includes('--verbose')
  const { root: place, asksNvcc = false, out, log } = host
  const context: CliContext = { root: place, signal: cancel.signal, verbose, asksNvcc, out, log }
  try {
    process.exitCode = undefined
    const run = async (): Promise<void> => {
      const root = await program(argv, () => context, host)
      await root.parseAsync(argv, { from: 'user' })
    }
    const verb = argv.find((word) => !word.startsWith('-'))
    await finishing(verb === undefined ? 'heddle' : `heddle ${verb}`, run, (reason) => cancel.abort(reason))
    return cancel.signal.aborted ? 130 : Number(process.exitCode ?? 0)
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0
    // If the process ran out of work, the signal only stops the rest and is not a cancellation.
    const cancelled = cancel.signal.aborted && !(cancel.signal.reason instanceof HeddleError)
    const { portable } = installation(host.root)
    if (argv.includes('--json')) host.out(failureJson(error, { cancelled, portable }))
    // The parser has already printed the error.
    if (error instanceof CommanderError) return 2
    const failure = describeFailure(error, { verbose, cancelled, portable })
    host.log(failure.text)
    return failure.exitCode
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt)
  }
}
