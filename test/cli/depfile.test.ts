/** `gen --depfile`: every file that was read, in a syntax that make takes; what changes then runs `gen` again, and nothing else does. */
import { execFileSync } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { depfileText } from '../../src/cli/depfile.js'
import { packageRoot } from '../../src/toolchain/index.js'
import { heddleIn, linkPackage } from '../verify/own_project.js'

describe('a rule', () => {
  it('escapes what make would split or expand', () => {
    const text = depfileText('out dir/manifest.json', ['/a b/x.ts', '/c#/$y.ts'])
    expect(text).toBe('out\\ dir/manifest.json: \\\n  /a\\ b/x.ts \\\n  /c\\#/$$y.ts\n\n/a\\ b/x.ts:\n/c\\#/$$y.ts:\n')
  })

  it('refuses a path with a line break', () =>
    expect(() => depfileText('m', ['a\nb'])).toThrow(expect.objectContaining({ code: 'gen.depfile' })))
})

let root = ''
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'heddle-depfile-'))
  await cp(join(fileURLToPath(new URL('../..', import.meta.url)), 'test/projects/checked/specs'), join(root, 'specs'), {
    recursive: true,
  })
  await linkPackage(root)
  await writeFile(join(root, 'package.json'), '{ "name": "own", "type": "module" }\n')
  await writeFile(join(root, 'Makefile'), `${join(root, 'generated/manifest.json')}:\n\techo again\n-include gen.d\n`)
})
afterAll(async () => {
  vi.unstubAllEnvs()
  await rm(root, { recursive: true, force: true })
})

/** Output of make: what it would run. */
const make = (): string =>
  execFileSync('make', ['-n', join(root, 'generated/manifest.json')], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })

it('names the specs, their folder, the configuration and the version of heddle', async () => {
  expect((await heddleIn(root, 'gen', '--depfile', 'gen.d')).code).toBe(0)
  const text = await readFile(join(root, 'gen.d'), 'utf8')
  const [target, ...sources] = text.slice(0, text.indexOf('\n\n')).split(' \\\n  ')
  expect(target).toBe(`${join(root, 'generated/manifest.json')}:`)
  const wanted = ['specs', 'specs/index.ts', 'specs/ops.ts', 'package.json'].map((name) => join(root, name))
  expect(sources).toEqual(expect.arrayContaining([...wanted, join(packageRoot(), 'package.json')]))
  expect(make()).toContain('is up to date')
})

it.each(['specs/ops.ts', 'specs/index.ts', 'package.json'])('runs gen again after a change of %s, once', async (name) => {
  const later = new Date(Date.now() + 5000)
  await utimes(join(root, name), later, later)
  expect(make()).toContain('echo again')
  const before = new Date(Date.now() - 5000)
  await utimes(join(root, name), before, before)
  expect((await heddleIn(root, 'gen', '--depfile', 'gen.d')).code).toBe(0)
  expect(make()).toContain('is up to date')
})

it('is refused if the read is not cached', async () => {
  vi.stubEnv('HEDDLE_KEPT', 'off')
  const { code, log } = await heddleIn(root, 'gen', '--depfile', 'gen.d')
  expect([code, log]).toEqual([2, expect.stringContaining('unset HEDDLE_KEPT')])
})
