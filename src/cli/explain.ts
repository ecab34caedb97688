/** `heddle explain`: what an error code means, an example and the repair, as the page of codes has them. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Command } from '@commander-js/extra-typings'
import { environmentError, usageError } from '../errors.js'
import { packageRoot } from '../toolchain/paths.js'
import type { CliContext } from './context.js'

const columns = ['', 'exit code', 'says, for instance', 'repair'] as const

/**
 * The entry of a code.
 * @throws usage `explain.code` for a code that there is not; environment `explain.page` where the page was not installed
 */
export async function explain(code: string): Promise<string> {
  const path = join(packageRoot(), 'src', 'docs', 'reference', 'errors.md')
  if (!existsSync(path))
    throw environmentError('explain.page', `${path} is missing`, { hint: 'use the npm package, which has it' })
  const page = await readFile(path, 'utf8')
  const [wanted, isFrontEnd] = [code.trim(), /^hed/i.test(code)]
  const name = isFrontEnd ? wanted.toUpperCase() : wanted
  const rows = [...page.matchAll(/^\| <a id="[^"]*"><\/a>`([^`]+)` \| (.*) \|$/gm)]
  const row = rows.find(([, found]) => found === name)
  if (row === undefined) {
    const [area] = name.split('.')
    const near = rows.flatMap(([, found = '']) => (found.startsWith(isFrontEnd ? 'HED' : `${area}.`) ? [found] : []))
    throw usageError('explain.code', `there is no error ${wanted}`, {
      hint: near.length === 0 ? 'codes look like HED103 or plan.node' : `known: ${near.join(', ')}`,
    })
  }
  const [, , cells = ''] = row
  const values = cells.split(/ (?<!\\)\| /).map((cell) => cell.replaceAll('\\|', '|').replaceAll('&lt;', '<'))
  const facts = values.map((value, at) => `${columns[at + 1]}: ${value}\n`).join('')
  const section = new RegExp(`^### ${name.replace('.', '\\.')}\\n\\n([\\s\\S]*?)(?=^##)`, 'm').exec(page)?.[1] ?? ''
  const entry = section.replace(/^```ts (refused|accepted)$/gm, '$1:\n').replace(/^```\n/gm, '')
  return `${name}\n\n${entry}${facts}`
}

export const explainCommand = (context: () => CliContext) =>
  new Command('explain')
    .description('say what an error code means, and what to do')
    .argument('<code>', 'such as HED103, or plan.node')
    .action(async (code) => context().out(await explain(code)))
