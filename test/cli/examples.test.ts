/** Examples of the help: every verb has two, and they name existing verbs and options. */
import { expect, it } from 'vitest'
import { examplesOf, verbsWithExamples } from '../../src/cli/examples.js'
import { textOf } from '../docs/pages.js'
import { heddle } from './host.js'

const helpOf = async (words: readonly string[]): Promise<string> => (await heddle(['help', ...words])).out

/** Verbs that `help` lists, those of two words among them. */
async function verbs(): Promise<readonly string[]> {
  const named = (help: string): string[] => [...help.matchAll(/^ {2}([a-z]+) \[/gm)].map(([, name = '']) => name)
  const first = named((await helpOf([])).replace(/^Usage:.*$/m, ''))
  const nested = await Promise.all(first.map(async (verb) => named((await helpOf([verb])).split('Commands:')[1] ?? '')))
  return first.flatMap((verb, at) => [verb, ...(nested[at] ?? []).map((name) => `${verb} ${name}`)])
}

it('every verb has two, except groups of verbs and completion, whose help explains its installation', async () => {
  const all = await verbs()
  expect(all).toContain('bench encoder')
  expect(all.filter((verb) => examplesOf(verb).length < 2)).toEqual(['plan', 'completion'])
  expect(verbsWithExamples.filter((verb) => !all.includes(verb))).toEqual([])
})

it('every verb but help, and but a group of verbs, is in the reference', async () => {
  const page = textOf('src/docs/reference/verbs.md')
  expect((await verbs()).filter((verb) => !page.includes(`<!-- help ${verb} -->`))).toEqual(['plan', 'help'])
})

it.each(verbsWithExamples)('%s: its own options, at the end of its help', async (verb) => {
  const help = await helpOf(verb.split(' '))
  const [options = '', closing = ''] = help.split('\nExamples:\n')
  for (const command of examplesOf(verb)) {
    expect(command.startsWith(`heddle ${verb}`), command).toBe(true)
    expect(closing).toContain(command)
    const named = [...command.matchAll(/ (--[a-z-]+)/g)].map(([, option = '']) => option)
    expect(
      named.filter((option) => !new RegExp(`${option}[ ,\\n]`).test(options)),
      command,
    ).toEqual([])
  }
})
