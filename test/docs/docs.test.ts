/** The documents: quotes match files and output of commands, links resolve, and commands can be run. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { repository } from '../cli/host.js'
import { errorCodes } from './error_codes.js'
import { bare, refusedOption } from './options.js'
import { brokenLinks, commandsOf, filled, pages, region, textOf, unexplained } from './pages.js'

it('the README is short', () => {
  expect(textOf('README.md').split('\n').length).toBeLessThanOrEqual(150)
})

describe.each(pages)('%s', (page) => {
  it('has up-to-date quotes', async () => {
    await expect(await filled(textOf(page))).toMatchFileSnapshot(join(repository, page))
  })
  it('has no broken links', () => {
    expect(brokenLinks(page, textOf(page))).toEqual([])
  })
  it('names options that verbs have', async () => {
    const all = commandsOf(textOf(page)).flatMap(({ lines }) => lines)
    for (const command of all) expect(await refusedOption(command), command).toBeUndefined()
  })
  it('has only commands that CI runs, unless marked', () => {
    // Those that a comment names a project or model for are run by commands.simt.test.ts.
    const unmarked = commandsOf(textOf(page)).filter(({ language, marked }) => language === 'sh' && marked === undefined)
    const lines = unmarked.flatMap((block) => block.lines)
    expect(lines.filter((command) => !ran.some((place) => place.includes(bare(command))))).toEqual([])
  })
  it('states the requirements of commands that CI does not run', () => {
    expect(unexplained(textOf(page))).toEqual([])
  })
})

/** The commands of a script that also states their exit codes, like that of the tarball. */
const commandsAlone = (script: string): string =>
  script
    .replace(/\bheddle \d /g, 'heddle ')
    .replace(/\btry \d /g, '')
    .replace(/\benter /g, 'cd ')
    .replaceAll('npx --no-install ', 'npx ')
    .replaceAll('node_modules/.bin/', 'npx ')

/** Files with commands that CI runs: its own scripts, and the scripts `npm test` and `npm start` of projects. */
const ran = [
  ...['.ci/run', '.ci/tarball', 'package.json', 'templates/init/common/package.json.hbs'],
  ...readdirSync(join(repository, 'test/examples'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `test/examples/${name}/package.json`),
].map((path) => commandsAlone(readFileSync(join(repository, path), 'utf8')))

it('the workflow for users runs the same as CI', () => {
  const lines = [...textOf('templates/ci/kernels.yml').matchAll(/- run: (.*)/g)].map(([, line = '']) => line)
  expect(lines.length).toBeGreaterThan(3)
  for (const line of lines)
    expect(
      ran.some((place) => place.includes(bare(line))),
      line,
    ).toBe(true)
})

it('variables of the environment are those that sources name', () => {
  const sources = ['src', 'native'].flatMap((folder) =>
    readdirSync(join(repository, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.(ts|cpp|hpp)$/.test(file) && !file.startsWith('build/'))
      .map((file) => textOf(join(folder, file))),
  )
  const named = sources.flatMap((text) =>
    [...text.matchAll(/(?:\benv(?:ironment)?\.|getenv\("|\{ )(HEDDLE_\w+|CXX)\b/g)].map(([, name = '']) => name),
  )
  const listed = [...textOf('src/docs/reference/environment.md').matchAll(/^\| `(\w+)`/gm)].map(([, name = '']) => name)
  expect(listed.toSorted()).toEqual([...new Set(named)].sort())
})

it('the picture shows numbers of the results', () => {
  const shown = [...readFileSync(join(repository, 'src/docs/fusion.svg'), 'utf8').matchAll(/class="ms"[^>]*>([\d.]+)</g)]
  expect(shown).toHaveLength(5)
  const [row = ''] = textOf('src/docs/results.md').match(/^\| 1x128 .*$/m) ?? []
  for (const [, number = ''] of shown) expect(row).toContain(number)
})

describe('checks of documents', () => {
  it('find an option that is not there', async () => {
    expect(await refusedOption('npx heddle gen --fast')).toBe('--fast')
    expect(await refusedOption('npx heddle bench encoder --config bert-base --json')).toBeUndefined()
    expect(await refusedOption('heddle weave')).toBe('weave')
    expect(await refusedOption('heddle pack bench rms_norm --fast -o job.tar.gz')).toBe('--fast')
    expect(await refusedOption('heddle pack check --dtype f16 -o job.tar.gz')).toBeUndefined()
  })
  it('find links that lead nowhere', () => {
    const text = '[a](missing.md) [b](../../LICENSE) [c](index.md#no-such) `[d](x.md)`'
    expect(brokenLinks('src/docs/index.md', text)).toEqual(['missing.md', 'index.md#no-such'])
    // The build of the site makes and checks pages of the API.
    expect(brokenLinks('src/docs/index.md', '[a](api/heddle/std.md) [b](api/heddle/loom.md)')).toEqual(['api/heddle/loom.md'])
  })
  it('find commands that are not run for no reason', () => {
    const block = '```bash\nheddle gen && heddle check --device cuda # all\n```\n'
    expect(unexplained(block)).toEqual(['heddle gen'])
    expect(unexplained(`<!-- needs a GPU -->\n${block}`)).toEqual([])
    expect(unexplained(`<!-- needs luck -->\n${block}`)).toEqual(['heddle gen'])
  })
  it('find a quote that is out of date, and a region that is gone', async () => {
    const old = '<!-- quote test/examples/01-elementwise/specs/index.ts#silu -->\nold\n<!-- /quote -->'
    expect(await filled(old)).toContain('const silu = (x: number)')
    expect(() => region('// #region a\n', 'a')).toThrow('no region a')
  })
  it('know the codes of refusals and of calls', () => {
    const codes = errorCodes()
    expect(codes.size).toBeGreaterThan(250)
    for (const code of ['HED101', 'plan.meaning', 'call.rank', 'device.fault', 'load.stale']) expect(codes.has(code)).toBe(true)
  })
})
