/**
 * `heddle completion SHELL`: prints a script by which a shell completes verbs, options and their choices. The script runs
 * `heddle complete -- WORDS` at each TAB, which answers from the declared commands.
 */
import { Argument, Command, type CommandUnknownOpts, type Option } from '@commander-js/extra-typings'
import { usageError } from '../errors.js'
import type { CliContext } from './context.js'

const shells = ['bash', 'zsh', 'fish', 'powershell'] as const

/** Completer that offers each of the given values. */
const offering =
  (values: readonly string[] = []) =>
  (complete: (value: string, description: string) => void): void => {
    for (const value of values) complete(value, '')
  }

/** Completion engine for a command. Loaded on demand, because no other verb needs it. */
async function engineOf(root: CommandUnknownOpts) {
  const { default: engine } = await import('@bomb.sh/tab')
  const add = (command: CommandUnknownOpts, path: string): void => {
    const known = path === '' ? engine : engine.command(path, command.description())
    const help = command.createHelp()
    for (const { long, alias, description, choices, isBoolean } of help.visibleOptions(command).map(named)) {
      if (isBoolean) known.option(long, description, alias)
      else known.option(long, description, offering(choices), alias)
    }
    for (const argument of command.registeredArguments) {
      known.argument(argument.name(), offering(argument.argChoices), argument.variadic)
    }
    for (const nested of help.visibleCommands(command)) add(nested, `${path} ${nested.name()}`.trim())
  }
  add(root, '')
  return engine
}

const named = ({ long, short, description, argChoices, required, optional }: Option) => ({
  long: (long ?? short ?? '').replace(/^-+/, ''),
  alias: short?.replace(/^-/, ''),
  description,
  choices: argChoices,
  isBoolean: !required && !optional,
})

/** Console output of an action. The engine prints its scripts only to the console. */
function printedBy(action: () => void): string {
  const lines: string[] = []
  const { log } = console
  console.log = (text: string) => void lines.push(text)
  try {
    action()
  } finally {
    console.log = log
  }
  return `${lines.join('\n')}\n`
}

/** Makes a script safe to source repeatedly, also after another program's script from the same engine: existing names are not set again. */
const repeatable = (script: string): string =>
  script.replace(/^readonly (\w+)=/gm, (_, name: string) => `[[ -n "\${${name}+set}" ]] || ${name}=`)

/** Shells with a script. */
export type Shell = (typeof shells)[number]

/** Completion script of a shell. @param root the command whose verbs are completed @throws usage `cli.usage` for a shell without one */
export async function scriptOf(root: CommandUnknownOpts, shell: Shell): Promise<string> {
  if (!shells.includes(shell))
    throw usageError('cli.usage', `no completion script for ${shell}`, { hint: `known: ${shells.join(', ')}` })
  const engine = await engineOf(root)
  return repeatable(printedBy(() => engine.setup('heddle', 'heddle', shell)))
}

/** @param root the command whose verbs are completed */
export const completionCommand = (root: CommandUnknownOpts, context: () => CliContext) =>
  new Command('completion')
    .description('print a script that completes verbs and options in a shell')
    .addArgument(new Argument('<shell>', 'shell of the script').choices(shells))
    .addHelpText('after', '\nIn ~/.bashrc: source <(heddle completion bash)\nIn ~/.zshrc: source <(heddle completion zsh)\n')
    .action(async (shell) => context().out(await scriptOf(root, shell)))

/** Command that the scripts call. @param root the command whose verbs are completed */
export const completeCommand = (root: CommandUnknownOpts) =>
  new Command('complete')
    .description('possible next words of a command line')
    .argument('[words...]')
    .action(async (words) => (await engineOf(root)).parse(words))
