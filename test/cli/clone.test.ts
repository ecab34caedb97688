/**
 * Generated source that may be compiled: files written by this user's own `gen` and, in a fresh clone, files that match the project's specs. Edited
 * and forged files are refused by name, before the compiler runs.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { searchManifests } from '../../src/toolchain/index.js'
import { keyFiles } from '../../src/toolchain/sources.js'
import { linkPackage } from '../verify/own_project.js'
import { heddle, punctuationModel } from './host.js'

let work: string
/** The home folder under which `gen` ran. */
let home: string
/** The same files on another machine, with an empty cache. */
let clone: string
let caches = 0

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const specs = `import { op, tensor } from 'heddle'

export const triple = op('triple', {
  dims: ['m', 'n'],
  types: { T: ['f32'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body: ({ x }) => (m, c) => ({ y: x(m, c) * 3 }),
})
`

const source = 'generated/cuda/triple__f32.cu'

/** The cache of another user, who has not worked here. */
const strangersCache = (): void => void vi.stubEnv('HEDDLE_CACHE', join(work, `cache${caches++}`))

const append = (root: string, file: string, text: string): void =>
  writeFileSync(join(root, file), readFileSync(join(root, file), 'utf8') + text)

/** The first step of compiling the project's kernel: its keys. */
async function keyed(root: string) {
  const { manifest, folderOf } = await searchManifests(root)
  const entry = manifest.kernels.find(({ key }) => key === 'triple__f32')
  if (entry === undefined) throw new Error('the project has no kernel')
  const compiler = { path: 'none', version: 'none' }
  const none = { target: 'simt', compiler, isCode: false, include: [], linkFlags: [], portable: [] } as const
  const file = { source: entry.file, path: join(folderOf(entry.key), entry.file), op: entry.op }
  return keyFiles({ ...none, compileFlags: () => [] }, [file])
}

beforeAll(async () => {
  work = mkdtempSync(join(tmpdir(), 'heddle-clone-'))
  await linkPackage(work)
  home = join(work, 'home')
  clone = join(work, 'clone')
  mkdirSync(join(home, 'specs'), { recursive: true })
  writeFileSync(join(home, 'package.json'), '{ "type": "module", "dependencies": { "heddle": "*" } }')
  writeFileSync(join(home, 'specs/index.ts'), specs)
  vi.stubEnv('HEDDLE_CACHE', join(work, 'home-cache'))
  const { exitCode, log } = await heddle(['gen'], home)
  expect(exitCode, log).toBe(0)
})
beforeEach(() => {
  rmSync(clone, { recursive: true, force: true })
  cpSync(home, clone, { recursive: true })
  rmSync(join(clone, '.heddle'), { recursive: true, force: true })
})
afterAll(() => {
  vi.unstubAllEnvs()
  rmSync(work, { recursive: true, force: true })
})

describe('if this user ran gen', () => {
  beforeEach(() => void vi.stubEnv('HEDDLE_CACHE', join(work, 'home-cache')))

  test('the source is compiled, also from a copy', async () => {
    expect(await keyed(home)).toHaveLength(1)
    expect(await keyed(clone)).toHaveLength(1)
  })

  test('an edited source is refused by name, with a hint', async () => {
    append(clone, source, '// edited\n')
    await expect(keyed(clone)).rejects.toMatchObject({
      class: 'usage',
      code: 'generated.foreign',
      message: `${join(clone, source)} was not written by your own \`heddle gen\`, and it would run as you`,
      hint: expect.stringContaining('run `heddle gen`'),
    })
  })

  test('an edited manifest is refused before anything of it is believed', async () => {
    append(clone, 'generated/manifest.json', '\n')
    await expect(searchManifests(clone)).rejects.toMatchObject({ code: 'generated.foreign' })
    expect(await searchManifests(clone, { asItLies: true })).toMatchObject({ hidden: [] })
  })
})

describe('in a fresh clone', () => {
  beforeEach(strangersCache)

  test('the source is not compiled before it is trusted', async () => {
    await expect(keyed(clone)).rejects.toMatchObject({ code: 'generated.foreign' })
  })

  test('gen makes it trusted', async () => {
    const { exitCode, log } = await heddle(['gen'], clone)
    expect(exitCode, log).toBe(0)
    expect(log).toContain('0 written')
    expect(await keyed(clone)).toHaveLength(1)
  })

  test('a verb that reads specs compares the source with them, once', async () => {
    const { exitCode, log } = await heddle(['plan', 'list'], clone)
    expect(exitCode, log).toBe(0)
    expect(log).toContain(`${join(clone, 'generated')} is not known to be yours`)
    expect(await keyed(clone)).toHaveLength(1)
    expect((await heddle(['plan', 'list'], clone)).log).not.toContain('is not known to be yours')
  })

  test('and refuses sources by name that differ from its specs', async () => {
    append(clone, source, '// planted\n')
    const { exitCode, log } = await heddle(['plan', 'list'], clone)
    expect(exitCode).toBe(1)
    expect(log).toContain('error[gen.check]')
    expect(log).toContain('cuda/triple__f32.cu')
    await expect(keyed(clone)).rejects.toMatchObject({ code: 'generated.foreign' })
  })

  test('a verb that runs a model never runs specs to find out', async () => {
    const mark = join(work, 'mark')
    append(clone, 'specs/index.ts', `import { writeFileSync } from 'node:fs'\nwriteFileSync(${JSON.stringify(mark)}, '')\n`)
    const { exitCode, log } = await heddle(['run', punctuationModel, '--device', 'simt', '--text', 'and God said'], clone)
    expect(exitCode).toBe(2)
    expect(log).toContain('error[generated.foreign]')
    expect(existsSync(mark)).toBe(false)
  })
})
