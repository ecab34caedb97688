/** Cache of TypeScript's compiler between processes: used by the next process, and rebuilt if it is damaged. */
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'

const root = join(import.meta.dirname, '..', '..', '..')
let cache: string

beforeAll(async () => {
  cache = await mkdtemp(join(tmpdir(), 'heddle-code-'))
})
afterAll(() => rm(cache, { recursive: true }))

/** Bytes of each cached file, by name, after a process has imported the types from a module. */
async function kept(): Promise<Map<string, Buffer>> {
  const script = `import { load } from './dist/typescript_hooks.js'
    const { source } = await load(new URL('test/refusal.ts', 'file://${root}/').href, { conditions: [] }, () => { throw new Error('Node was asked') })
    if (!source.includes('export')) throw new Error(source)`
  const env = { ...process.env, HEDDLE_CACHE: cache }
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { cwd: root, env })
  const folder = join(cache, 'kept')
  const names = await readdir(folder)
  return new Map(await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name))] as const)))
}

test('the code of the compiler and of its wrapper is written once, and again if it is damaged', async () => {
  const first = await kept()
  const [[name, bytes] = ['', Buffer.alloc(0)]] = [...first].sort(([, a], [, b]) => b.length - a.length)
  expect(first.size).toBe(3)
  expect(bytes.length).toBeGreaterThan(1_000_000)
  const second = await kept()
  expect([...second.keys()]).toEqual([...first.keys()])
  for (const [file, code] of first) expect(second.get(file)?.equals(code), file).toBe(true)
  const damaged = Buffer.from(bytes)
  damaged.writeUInt8(damaged.readUInt8(500_000) ^ 1, 500_000)
  await writeFile(join(cache, 'kept', name), damaged)
  const again = (await kept()).get(name)
  expect(again?.equals(damaged)).toBe(false)
  expect(again?.length).toBeGreaterThan(1_000_000)
})

test('the package makes Node search for no module that it packs, nor read the compiler as one', async () => {
  const files = (await readdir(join(root, 'dist'), { recursive: true })).filter((name) => name.endsWith('.js'))
  const texts = await Promise.all(files.map(async (name) => [name, await readFile(join(root, 'dist', name), 'utf8')] as const))
  expect(texts.length).toBeGreaterThan(200)
  const importing = texts.filter(([, text]) => /^(import|export) .*["'](ts-morph|execa|zod|handlebars)["']/m.test(text))
  expect(importing.map(([name]) => name)).toEqual([])
  const licences = await readFile(join(root, 'dist', 'licences.txt'), 'utf8')
  expect(licences.split('\n')).toEqual(expect.arrayContaining(['execa', 'zod', 'cross-spawn']))
})
