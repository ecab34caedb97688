/**
 * Code in a folder is not run because the folder also has a model: five ways of planting code, each of which leaves a mark if it runs, and an
 * ordinary run for comparison. The planted code is always a constructor that writes a file.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { manifestSchema } from '../../src/emit/manifest/manifest.js'
import { registryText } from '../../src/emit/manifest/registry.js'
import { canonicalJson, hashTree, sha256 } from '../../src/toolchain/hash.js'
import { heddle, punctuationModel, repository } from './host.js'

let work: string
let model: string
let mark: string

const shipped = join(repository, 'generated')
const verse = 'and God said Let there be light'

const write = (path: string, text: string): void => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** C++ that leaves the mark when it is loaded. */
const planted = (): string => `
#include <cstdio>
__attribute__((constructor)) static void leave_mark() {
  if (std::FILE* file = std::fopen(${JSON.stringify(mark)}, "w")) std::fclose(file);
}
`

/** A module that leaves the mark when it is run. */
const leaving = (): string => `import { writeFileSync } from 'node:fs'\nwriteFileSync(${JSON.stringify(mark)}, '')\n`

/** Generated source that hides the shipped softmax, with the matching digests. */
function plantText(folder: string): void {
  const { kernels } = manifestSchema.parse(JSON.parse(readFileSync(join(shipped, 'manifest.json'), 'utf8')))
  const own = kernels
    .filter(({ op }) => op === 'softmax')
    .map((entry) => {
      const text = readFileSync(join(shipped, entry.file), 'utf8') + planted()
      write(join(folder, 'generated', entry.file), text)
      return { ...entry, digest: sha256(text) }
    })
  write(join(folder, 'generated/manifest.json'), JSON.stringify({ version: 1, kernels: own, plans: {} }))
  write(join(folder, 'generated/registry.cpp'), registryText(own))
}

/** An addon, with the stamp of a build that is current. */
async function plantAddon(folder: string): Promise<void> {
  const release = join(folder, '.heddle/native/Release')
  write(join(folder, 'planted.cpp'), planted())
  mkdirSync(release, { recursive: true })
  const files: Record<string, string> = {}
  for (const name of ['heddle.node', 'libheddle_simt.so']) {
    execFileSync(process.env.CXX ?? 'c++', ['-shared', '-fPIC', join(folder, 'planted.cpp'), '-o', join(release, name)])
    files[name] = sha256(readFileSync(join(release, name)))
  }
  const sources = sha256(canonicalJson(await hashTree(join(repository, 'native'), ['build', 'device', 'export'])))
  write(join(folder, '.heddle/native/heddle-build.json'), JSON.stringify({ sources, key: sources, cuda: true, files }))
}

/** Specs, a package that depends on heddle, and that package, all of which leave the mark when they are imported. */
function plantPackage(folder: string): void {
  write(join(folder, 'specs/index.ts'), leaving())
  write(
    join(folder, 'package.json'),
    JSON.stringify({ name: 'model', type: 'module', main: 'index.js', dependencies: { heddle: '*' } }),
  )
  write(join(folder, 'index.js'), leaving())
  const library = join(folder, 'node_modules/heddle')
  write(
    join(library, 'package.json'),
    JSON.stringify({ name: 'heddle', type: 'module', exports: { '.': './index.js', './*': './index.js' } }),
  )
  write(join(library, 'index.js'), leaving())
}

beforeAll(() => {
  work = mkdtempSync(join(tmpdir(), 'heddle-planted-'))
  model = join(work, 'model')
  mark = join(work, 'mark')
  cpSync(punctuationModel, model, { recursive: true })
  // The user's own build, found as a user finds it.
  vi.stubEnv('HEDDLE_NATIVE', '')
})
afterEach(() => {
  for (const name of ['generated', '.heddle', 'specs', 'node_modules', 'package.json', 'index.js', 'planted.cpp'])
    rmSync(join(model, name), { recursive: true, force: true })
  rmSync(mark, { force: true })
})
afterAll(() => {
  vi.unstubAllEnvs()
  rmSync(work, { recursive: true, force: true })
})

test.each([
  ['generated text that hides the shipped one', () => plantText(model)],
  ['an addon with a stamp', () => plantAddon(model)],
  ['specs, a package that depends on heddle, and a heddle of its own', () => plantPackage(model)],
  [
    'all of it',
    async () => {
      plantText(model)
      await plantAddon(model)
      plantPackage(model)
    },
  ],
])('a model runs from a folder with %s, which does not run', async (_, plant) => {
  await plant()
  const { exitCode, out, log } = await heddle(['run', '.', '--device', 'simt', '--text', verse], model)
  expect(exitCode, log).toBe(0)
  expect(out).toMatch(/and God said[,:]/)
  expect(existsSync(mark)).toBe(false)
})

test('heddle doctor loads no addon from the folder', async () => {
  await plantAddon(model)
  plantPackage(model)
  const { exitCode, out } = await heddle(['doctor', '--json'], model)
  expect(exitCode).toBe(0)
  expect(JSON.parse(out)).toMatchObject({
    devices: [{ kind: 'js', available: true }, { kind: 'simt', available: true }, { kind: 'cuda' }],
  })
  expect(existsSync(mark)).toBe(false)
})

test('generated source of a folder around a model is refused by name, and specs in it are not read', async () => {
  const around = join(work, 'around')
  plantText(around)
  plantPackage(around)
  const { exitCode, log } = await heddle(['run', model, '--device', 'simt', '--text', verse], around)
  expect(exitCode).toBe(2)
  expect(log).toContain(
    `error[generated.foreign]: ${join(around, 'generated/manifest.json')} was not written by your own \`heddle gen\``,
  )
  expect(log).toContain('run `heddle gen`')
  expect(existsSync(mark)).toBe(false)
})
