/** The scripts of the page about Node, run verbatim next to the package. CI runs them from the packed tarball. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { repository } from '../cli/host.js'
import { kjvGqa } from '../models/text_fixtures.js'
import { textOf } from './pages.js'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-scripts-'))
  await mkdir(join(folder, 'node_modules'))
  await symlink(repository, join(folder, 'node_modules/heddle'))
})
afterAll(() => rm(folder, { recursive: true }))

/** Lines that a script prints. */
async function printed(name: string, ...argv: readonly string[]): Promise<string[]> {
  const quote = new RegExp(`^<!-- quote test/scripts/${name}\\.ts -->\\n\`\`\`ts\\n([\\s\\S]*?)^\`\`\``, 'm')
  const [, script = ''] = quote.exec(textOf('src/docs/guides/node.md')) ?? []
  expect(script.split('\n').length).toBeGreaterThan(10)
  expect(script.trimEnd().split('\n').length).toBeLessThanOrEqual(30)
  const file = join(folder, `${name}.mjs`)
  await writeFile(file, script)
  const env = { HEDDLE_NATIVE: process.env.HEDDLE_NATIVE }
  const { stdout, stderr, exitCode } = await execa('node', [file, ...argv], { cwd: folder, env, reject: false })
  expect(exitCode, stderr).toBe(0)
  return stdout.split('\n')
}

it('chat.mjs prints a text up to its stop string, and the likelihood of its tokens', async () => {
  const [text = '', finish, ...tokens] = await printed('chat', kjvGqa, 'In the beginning')
  expect(text).toMatch(/^[^,.]+$/)
  expect(finish).toMatch(/^\(stop at [,.]\)$/)
  const words = tokens.map((line) => /^-\d+\.\d{3} (".*")$/.exec(line)?.[1] ?? expect.fail(line))
  const written = words.map((word) => JSON.parse(word)).join('')
  expect([text, written.slice(0, text.length)]).toEqual([text, text])
  expect(written).toHaveLength(text.length + 1)
})

it('embed.mjs finds the two of ten sentences that are alike', async () => {
  const [line] = await printed('embed')
  expect(line).toMatch(/^10 0\.\d{3} And he said unto her .* \| And he said unto them /)
})
