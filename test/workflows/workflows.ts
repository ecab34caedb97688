/** Workflows and actions as GitHub reads them, and what in them cannot work: unknown verbs, flags, scripts, files and inputs. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { z } from 'zod'
import { repository } from '../cli/host.js'
import { refusedOption } from '../docs/options.js'
import { textOf } from '../docs/pages.js'

const step = z.object({
  uses: z.string().optional(),
  run: z.string().optional(),
  shell: z.string().optional(),
  with: z.record(z.string(), z.unknown()).optional(),
  env: z.record(z.string(), z.unknown()).optional(),
})
type Step = z.infer<typeof step>

const inputs = z.record(z.string(), z.object({ description: z.string(), default: z.string() }))
const action = z.object({
  name: z.string(),
  description: z.string(),
  inputs,
  runs: z.object({ using: z.literal('composite'), steps: z.array(step) }),
})
const job = z.object({ 'runs-on': z.string(), steps: z.array(step) })
const workflow = z.object({
  name: z.string(),
  on: z.unknown(),
  permissions: z.record(z.string(), z.string()),
  jobs: z.record(z.string(), job),
})

const below = (folder: string): readonly string[] =>
  readdirSync(join(repository, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.yml'))
    .map((name) => `${folder}/${name}`)

/** Files of actions and workflows, the project's own and those for users. */
export const files: readonly string[] = [...below('.github/actions'), ...below('.github/workflows'), ...below('templates/ci')]

const scripts: Readonly<Record<string, string>> = JSON.parse(textOf('package.json')).scripts

/** Lines of a step without expansions of variables, whose flags are taken as written. */
const commandsOf = ({ run = '' }: Step): readonly string[] =>
  run
    .replace(/\$\{\w+:\+([^}]*)\}/g, '$1')
    .split('\n')
    .map((line) => line.trim().replace(/^node dist\/cli\.js /, 'npx heddle '))
    .filter((line) => line !== '')

async function faultOf(command: string): Promise<string | undefined> {
  const [program = '', first = '', second = ''] = command.split(' ')
  if (program === 'npx' && first === 'heddle') {
    const refused = await refusedOption(command)
    return refused && `${command}: there is no ${refused}`
  }
  if (program === 'npm' && first === 'run' && !Object.hasOwn(scripts, second)) return `there is no script ${second}`
  return /^\.\w+\//.test(program) && !existsSync(join(repository, program)) ? `there is no file ${program}` : undefined
}

/** Inputs that a step gives to an action of the repository and that this lacks. */
function unknownInputs({ uses = '', with: given = {} }: Step): readonly string[] {
  if (!uses.startsWith('./')) return /@v\d+$/.test(uses) || uses === '' ? [] : [`${uses} has no version`]
  const path = `${uses.slice(2)}/action.yml`
  if (!existsSync(join(repository, path))) return [`there is no file ${path}`]
  const known = action.parse(parse(textOf(path))).inputs
  return Object.keys(given).flatMap((name) => (Object.hasOwn(known, name) ? [] : [`${uses} has no input ${name}`]))
}

/** Everything in an action or a workflow that cannot work. @throws if it is not YAML, or lacks a field */
export async function faultsOf(file: string, text: string): Promise<readonly string[]> {
  const isAction = file.endsWith('/action.yml')
  const parsed: unknown = parse(text, { strict: true, uniqueKeys: true })
  const read = isAction ? action.parse(parsed) : workflow.parse(parsed)
  const steps = 'runs' in read ? read.runs.steps : Object.values(read.jobs).flatMap((each) => each.steps)
  const known = 'runs' in read ? Object.keys(read.inputs) : []
  const used = [...text.matchAll(/\binputs\.([\w-]+)/g)].map(([, name = '']) => name)
  const commands = await Promise.all(steps.flatMap(commandsOf).map(faultOf))
  return [
    ...commands.flatMap((fault) => fault ?? []),
    ...steps.flatMap(unknownInputs),
    ...used.filter((name) => !known.includes(name)).map((name) => `there is no input ${name}`),
    ...known.filter((name) => !used.includes(name)).map((name) => `input ${name} is not used`),
    ...steps.flatMap(({ run, shell }) => (isAction && run !== undefined && shell === undefined ? [`${run}: no shell`] : [])),
    // An expression in a command would be run by the shell.
    ...steps.flatMap(({ run = '' }) => (run.includes('${{') ? [`${run}: an expression`] : [])),
  ]
}
