/** Platform packages as npm sees them: those of other machines are skipped, whether or not the registry has them. */
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { platformManifest, platformName } from '../../src/toolchain/platform_package.js'
import { ran } from '../export/cmake_project.js'
import { openRegistry } from './registry.js'

let work = ''
beforeEach(async () => {
  work = await mkdtemp(join(tmpdir(), 'heddle-registry-'))
})
afterEach(() => rm(work, { recursive: true, force: true }))

async function packageOf(manifest: object): Promise<string> {
  const folder = await mkdtemp(join(work, 'published-'))
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
  return folder
}

const own = async () => JSON.parse(await platformManifest())
/** Platform packages of machines with another system, another processor and another C library. */
const others = async (): Promise<readonly { readonly name: string }[]> => [
  { ...(await own()), name: '@heddle/of-another-system', os: [process.platform === 'win32' ? 'linux' : 'win32'] },
  { ...(await own()), name: '@heddle/of-another-processor', cpu: ['s390x'] },
  { ...(await own()), name: '@heddle/of-another-libc', libc: ['musl'] },
]

/** Installs a package in an empty folder, with an empty cache. @returns npm's exit code, what it printed, and the packages of @heddle */
async function installed(published: readonly object[], top: object) {
  const registry = await openRegistry(await Promise.all([...published, top].map(packageOf)))
  const app = join(work, 'app')
  for (const name of ['app', 'home']) await mkdir(join(work, name))
  const flags = ['--prefix', app, '--registry', registry.url, '--no-audit', '--no-fund', '--no-update-notifier']
  const { code, output } = await ran('npm', ['install', 'tool', ...flags], {
    PATH: process.env.PATH,
    HOME: join(work, 'home'),
  })
  await registry.close()
  return { code, output, packages: await readdir(join(app, 'node_modules/@heddle')).catch(() => []), fetched: registry.fetched }
}

const version = '1.0.0'
/** A package that depends on platform packages, as `kind` says. */
const toolWith = (kind: string, names: readonly string[], versions: string) => ({
  name: 'tool',
  version,
  [kind]: Object.fromEntries(names.map((name) => [name, versions])),
})

it('of other machines are skipped without failing', async () => {
  const [mine, theirs] = [await own(), await others()]
  const names = [platformName(), ...theirs.map(({ name }) => name)]
  const { code, packages, fetched } = await installed([mine, ...theirs], toolWith('optionalDependencies', names, mine.version))
  expect([code, packages]).toEqual([0, [platformName().replace('@heddle/', '')]])
  expect([...fetched].sort()).toEqual([platformName(), 'tool'])
})

it('which the registry lacks are skipped without failing', async () => {
  const { code, packages } = await installed([], toolWith('optionalDependencies', [platformName()], version))
  expect([code, packages]).toEqual([0, []])
})

it('of other machines are refused as usual dependencies', async () => {
  const theirs = await others()
  for (const each of theirs) {
    const { code, output } = await installed([each], toolWith('dependencies', [each.name], (await own()).version))
    expect([code, output]).toEqual([1, expect.stringContaining('EBADPLATFORM')])
    for (const name of ['app', 'home']) await rm(join(work, name), { recursive: true })
  }
})
