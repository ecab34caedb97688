/** `heddle explain`: prints the meaning, usual cause and repair of an error code; for codes of the front end, also an example and its repair. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Command } from '@commander-js/extra-typings'
import { codeTexts } from '../codes/index.js'
import { type ErrorCode, environmentError, usageError } from '../errors.js'
import { packageRoot } from '../toolchain/paths.js'
import type { CliContext } from './context.js'

const frontEndColumns = ['exit code', 'says, for instance', 'repair'] as const
const textColumns = ['means', 'usual cause', 'what to do'] as const

const isKnown = (code: string): code is ErrorCode => Object.hasOwn(codeTexts, code)

/**
 * Returns the entry of a code.
 * @throws usage `explain.code` for an unknown code; environment `explain.page` if the page is not installed
 */
export async function explain(code: string): Promise<string> {
  const path = join(packageRoot(), 'src', 'docs', 'reference', 'errors.md')
  if (!existsSync(path))
    throw environmentError('explain.page', `${path} is missing`, { hint: 'use the npm package, which has it' })
  const page = await readFile(path, 'utf8')
  const [wanted, isFrontEnd] = [code.trim(), /^hed/i.test(code)]
  const name = isFrontEnd ? wanted.toUpperCase() : wanted
  const rows = [...page.matchAll(/^\| <a id="[^"]*"><\/a>`([^`]+)` \| (.*) \|$/gm)]
  const cells = rows.find(([, found]) => found === name)?.[2]?.split(/ (?<!\\)\| /) ?? []
  const values = cells.map((value) => value.replaceAll('\\|', '|').replaceAll('&lt;', '<'))
  if (isKnown(name)) {
    const [meaning = '', cause = '', repair = ''] = codeTexts[name].split(' | ')
    const [exit = '', , , , says = ''] = values
    const texts = [meaning, cause, repair].map((text, at) => `${textColumns[at]}: ${text}\n`).join('')
    return `${name}\n\n${texts}exit code: ${exit}\nsays, for instance: ${says}\n`
  }
  if (values.length === 0) {
    const [area] = name.split('.')
    const near = rows.flatMap(([, found = '']) => (found.startsWith(isFrontEnd ? 'HED' : `${area}.`) ? [found] : []))
    throw usageError('explain.code', `unknown error code ${wanted}`, {
      hint: near.length === 0 ? 'codes look like HED103 or plan.node' : `known: ${near.join(', ')}`,
    })
  }
  const facts = values.map((value, at) => `${frontEndColumns[at]}: ${value}\n`).join('')
  const section = new RegExp(`^### ${name}\\n\\n([\\s\\S]*?)(?=^##)`, 'm').exec(page)?.[1] ?? ''
  const entry = section.replace(/^```ts (refused|accepted)$/gm, '$1:\n').replace(/^```\n/gm, '')
  return `${name}\n\n${entry}${facts}`
}

export const explainCommand = (context: () => CliContext) =>
  new Command('explain')
    .description('explain an error code and its repair')
    .argument('<code>', 'such as HED103, or plan.node')
    .action(async (code) => context().out(await explain(code)))
