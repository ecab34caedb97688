/**
 * The tutorials' projects, run as their reader runs them: from a separate folder with the package installed. A rotating third of them; CI runs all
 * of them from the packed tarball.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, it } from 'vitest'
import { inTurn } from '../turns.js'
import { examples, home, install } from './install.js'

const names = readdirSync(examples, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
const packageOf = (folder: string) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))

/** Output of a project as its tutorial shows it. */
function quoted(name: string): readonly string[] {
  const page = readFileSync(join(home, 'src/docs/tutorials', `${name}.md`), 'utf8')
  const blocks = [...page.matchAll(/^```text\n(.*?)^```$/gms)].map(([, text = '']) => text)
  // Some show how a mistake is refused.
  return blocks.filter((text) => !text.startsWith('error[')).flatMap((text) => text.trimEnd().split('\n'))
}

const run = (root: string, ...args: string[]) =>
  execa('npm', ['--silent', ...args], { cwd: root, env: { HEDDLE_NATIVE: process.env.HEDDLE_NATIVE }, reject: false, all: true })

it('are ten, of the versions that heddle is tested with', () => {
  expect(names).toHaveLength(10)
  const { version, devDependencies: own } = packageOf(home)
  for (const name of names) {
    const { name: called, dependencies, devDependencies } = packageOf(join(examples, name))
    expect([called, dependencies]).toEqual([name, { heddle: `^${version}` }])
    expect(devDependencies).toEqual({ '@types/node': own['@types/node'], typescript: own.typescript })
  }
})

it.each(inTurn(names))('%s computes the same as plain JavaScript, and prints the output in its tutorial', async (name) => {
  const root = await install(name)
  const { all, exitCode } = await run(root, 'test')
  expect(exitCode, all).toBe(0)
  expect(all?.split('\n')).toEqual(expect.arrayContaining([...quoted(name)]))
  await rm(root, { recursive: true })
})

it('fail if plain JavaScript computes something else', async () => {
  const root = await install('01-elementwise')
  const main = readFileSync(join(root, 'main.ts'), 'utf8')
  await writeFile(join(root, 'main.ts'), main.replace('(1 + Math.exp(-x))', '(1.001 + Math.exp(-x))'))
  const { all, exitCode } = await run(root, 'test')
  expect(all).toMatch(/elements differ/)
  expect(exitCode).toBe(1)
  await rm(root, { recursive: true })
})
