/**
 * Commands of the documents that a comment assigns to a project or a model, run as written: `run in 03-layer-norm` in a copy of the example, `run
 * with the llama` in an empty folder next to a small model of that kind, which replaces `MODEL`, and cases for it; `run in project suite` in a copy
 * of a test project, all blocks of the page in one, as a story whose output is that of the page. A rotating third of them.
 */
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, expect, it } from 'vitest'
import { heddle, punctuationModel, repository } from '../cli/host.js'
import { home, install, installed } from '../examples/install.js'
import { numberWords } from '../models/seq2seq_fixtures.js'
import { writeTextModel } from '../models/text_model.js'
import { inTurn } from '../turns.js'
import { commandsOf, pages, textOf } from './pages.js'

const folders: string[] = []
afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true })
})

interface Place {
  readonly root: string
  readonly model: string
}

/** @param model a folder, or a function that writes one @param cases one line of its cases */
async function beside(model: string | ((folder: string) => Promise<void>), cases: object): Promise<Place> {
  const root = await mkdtemp(join(tmpdir(), 'heddle-commands-'))
  folders.push(root)
  for (const file of ['cases.jsonl', 'more.jsonl', 'texts.jsonl']) await writeFile(join(root, file), `${JSON.stringify(cases)}\n`)
  if (typeof model === 'string') return { root, model }
  const folder = join(root, 'model')
  await mkdir(folder)
  await model(folder)
  return { root, model: folder }
}

async function placeOf(marked: string): Promise<Place> {
  if (marked === 'run with the encoder') return beside(punctuationModel, { text: 'and God said Let there be light' })
  if (marked === 'run with the decoder') return beside(numberWords, { input_ids: [4, 5, 1] })
  if (marked === 'run with the llama')
    return beside(writeTextModel, { text: 'In the beginning God created the heaven. '.repeat(20) })
  const [, project] = /^run in project (\w+)$/.exec(marked) ?? []
  if (project !== undefined) {
    const root = await installed(join(home, 'test/projects', project))
    folders.push(root)
    await writeFile(join(root, 'package.json'), '{ "type": "module" }')
    return { root, model: '' }
  }
  const [, example = expect.fail(`nothing says how to ${marked}`)] = /^run in (\d\d-[\w-]+)$/.exec(marked) ?? []
  const root = await install(example)
  folders.push(root)
  expect((await heddle(['gen'], root)).exitCode).toBe(0)
  return { root, model: '' }
}

interface Block {
  readonly page: string
  readonly marked: string
  readonly lines: readonly string[]
}

const single: readonly Block[] = pages.flatMap((page) =>
  commandsOf(textOf(page)).flatMap(({ marked = '', lines }) => (marked.startsWith('run ') ? [{ page, marked, lines }] : [])),
)

const isStory = ({ marked }: Block): boolean => marked.startsWith('run in project ')

/** Blocks, of which those of a story are one. */
const blocks: readonly Block[] = [
  ...single.filter((block) => !isStory(block)),
  ...[...new Set(single.filter(isStory).map(({ page }) => page))].flatMap((page): Block[] => {
    const parts = single.filter((block) => isStory(block) && block.page === page)
    return parts[0] === undefined ? [] : [{ ...parts[0], lines: parts.flatMap(({ lines }) => lines) }]
  }),
]

/** Lines of the outputs that a page shows. */
const shownIn = (page: string): string[] =>
  [...textOf(page).matchAll(/^```text\n(.*?)^```$/gms)].flatMap(([, text = '']) => text.trimEnd().split('\n'))

it('there are some, and an unknown place is a failure', async () => {
  expect(blocks.length).toBeGreaterThan(4)
  await expect(placeOf('run with luck')).rejects.toThrow('nothing says how to run with luck')
})

it.each(inTurn(blocks))('$page: $marked', async (block) => {
  const { root, model } = await placeOf(block.marked)
  let said = ''
  for (const line of block.lines) {
    const words = [...line.replace(/^npx /, '').matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain = '']) => quoted ?? plain)
    const [command, from = '', to = ''] = words
    if (command === 'cp' && isStory(block)) {
      await cp(join(root, from), join(root, to))
      continue
    }
    expect(command, line).toBe('heddle')
    const argv = words.slice(1).map((word) => (word === 'MODEL' ? model : word))
    const { exitCode, stdout, stderr } = await execa('node', [join(repository, 'dist/cli.js'), ...argv], {
      cwd: root,
      env: { HEDDLE_NATIVE: process.env.HEDDLE_NATIVE },
      reject: false,
    })
    expect(exitCode, `${line}\n${stderr}`).toBe(0)
    if (!isStory(block)) expect(stdout, line).not.toBe('')
    said += `${stdout}\n${stderr}\n`
  }
  if (isStory(block)) for (const line of shownIn(block.page)) expect(said).toContain(line)
})
