/** `heddle help VERB`: prints the same as `heddle VERB --help`. */
import { Command, type CommandUnknownOpts } from '@commander-js/extra-typings'
import { usageError } from '../errors.js'

/** @param root the command whose verbs are explained */
export const helpCommand = (root: CommandUnknownOpts) =>
  new Command('help')
    .description('explain a verb')
    .argument('[verb...]', 'such as run, or plan show')
    .action((names) => {
      let command = root
      for (const name of names) {
        const next = command.commands.find((each) => each.name() === name)
        if (next === undefined) {
          throw usageError('cli.usage', `there is no verb ${JSON.stringify(name)}`, {
            hint: `known: ${command.commands.map((each) => each.name()).join(', ') || 'none below this one'}`,
          })
        }
        command = next
      }
      command.outputHelp()
    })

/** Closing lines of the help of `heddle` itself. */
export const closingHelp = `
Exit codes: 0 done, 1 a check found something (or heddle is at fault), 2 wrong usage or input, 3 the machine lacks something, 130 cancelled.
Under --json, results and errors are JSON on stdout: {"error":{"code","message","hint","place"}}; everything else is on stderr.
`
