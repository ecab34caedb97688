/** The cache of compiled objects: damaged entries are rebuilt, failures leave no file, and killed processes block no other. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, truncate, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'rolldown'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { cached, isWhole } from '../../src/toolchain/cache.js'
import { cacheLimit, isSweepDue, sweep } from '../../src/toolchain/sweep.js'

let root: string

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'heddle-cache-'))
})

afterEach(() => rm(root, { recursive: true }))

let made = 0
const make = async (folder: string): Promise<void> => {
  made += 1
  await writeFile(join(folder, 'object.o'), 'the object')
  await writeFile(join(folder, 'stderr.txt'), '')
}

const visible = async (): Promise<string[]> => (await readdir(root)).filter((name) => !name.startsWith('.'))
const unfinished = async (): Promise<string[]> => (await readdir(root)).filter((name) => name.startsWith('.making-'))

describe('an entry', () => {
  test('is made once', async () => {
    expect(await cached(root, 'key', make)).toEqual({ folder: join(root, 'key'), made: true })
    expect(await cached(root, 'key', make)).toEqual({ folder: join(root, 'key'), made: false })
    expect(await visible()).toEqual(['key'])
  })

  test.each([
    ['emptied', (folder: string) => truncate(join(folder, 'object.o'))],
    ['altered by a byte', (folder: string) => writeFile(join(folder, 'object.o'), 'the objecT')],
    ['without a file', (folder: string) => rm(join(folder, 'stderr.txt'))],
    ['without its digests', (folder: string) => rm(join(folder, 'digests.json'))],
    ['with damaged digests', (folder: string) => writeFile(join(folder, 'digests.json'), '{"object.o":')],
    ['with no digests listed', (folder: string) => writeFile(join(folder, 'digests.json'), '{}')],
    ['empty', (folder: string) => rm(folder, { recursive: true }).then(() => mkdir(folder))],
    ['a file', (folder: string) => rm(folder, { recursive: true }).then(() => writeFile(folder, 'x'))],
  ])('that is %s is made again', async (_, damage) => {
    const { folder } = await cached(root, 'key', make)
    await damage(folder)
    expect(await isWhole(folder)).toBe(false)
    const before = made
    expect(await cached(root, 'key', make)).toMatchObject({ made: true })
    expect(made).toBe(before + 1)
    expect(await readFile(join(folder, 'object.o'), 'utf8')).toBe('the object')
    expect(await unfinished()).toEqual([])
  })

  test('that fails leaves no file, and a full disk is reported', async () => {
    const full = async (folder: string): Promise<void> => {
      await writeFile(join(folder, 'object.o'), 'half')
      throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
    }
    await expect(cached(root, 'key', full)).rejects.toThrow('no space')
    expect(await visible()).toEqual([])
    expect(await unfinished()).toEqual([])
    expect(await cached(root, 'key', make)).toMatchObject({ made: true })
  })

  test('requested several times at once is made once', async () => {
    const before = made
    const results = await Promise.all(Array.from({ length: 5 }, () => cached(root, 'key', make)))
    expect(results.filter((result) => result.made)).toHaveLength(1)
    expect(made).toBe(before + 1)
  })
})

describe('a sweep', () => {
  const aged = async (key: string, hours: number, bytes: number): Promise<void> => {
    const { folder } = await cached(root, key, (at) => writeFile(join(at, 'object.o'), Buffer.alloc(bytes)))
    const then = new Date(Date.now() - hours * 3_600_000)
    await utimes(folder, then, then)
  }

  test('evicts the least recently used entries down to the limit', async () => {
    await aged('old', 5, 4000)
    await aged('older', 7, 4000)
    await aged('young', 2, 4000)
    const { removed } = await sweep([root], 9000)
    expect(removed).toEqual([join(root, 'older')])
    expect((await visible()).sort()).toEqual(['old', 'young'])
  })

  test('leaves files that are not entries', async () => {
    const then = new Date(Date.now() - 9 * 3_600_000)
    await mkdir(join(root, 'mine'))
    await writeFile(join(root, 'mine', 'notes.md'), 'mine')
    await utimes(join(root, 'mine'), then, then)
    expect((await sweep([root], 1)).removed).toEqual([])
  })

  test('leaves entries used within the hour, which a build may be about to link', async () => {
    await aged('now', 0, 4000)
    expect((await sweep([root], 1)).removed).toEqual([])
  })

  test('removes files of a dead build, and none of a living one', async () => {
    await mkdir(join(root, '.making-dead-x1y2z3'))
    await cached(root, 'living', async (folder) => {
      expect((await sweep([root], 1e9)).removed).toEqual([join(root, '.making-dead-x1y2z3')])
      await writeFile(join(folder, 'object.o'), 'x')
    })
    expect(existsSync(join(root, 'living'))).toBe(true)
  })

  test('is due once an hour, and after the clock was set back', async () => {
    expect(await isSweepDue(root)).toBe(true)
    expect(await isSweepDue(root)).toBe(false)
    expect(await isSweepDue(root, Date.now() + 3_700_000)).toBe(true)
    expect(await isSweepDue(root, Date.now() - 60_000)).toBe(true)
    expect(await isSweepDue(join(root, 'missing'))).toBe(false)
  })

  test('limits are numbers of MiB', () => {
    expect(cacheLimit('2')).toBe(2 * 2 ** 20)
    expect(cacheLimit(undefined)).toBe(4096 * 2 ** 20)
    for (const wrong of ['0', '-1', 'much', 'Infinity']) {
      expect(() => cacheLimit(wrong)).toThrow(expect.objectContaining({ code: 'cache.limit' }))
    }
  })
})

describe('processes', () => {
  let program: string
  beforeAll(async () => {
    program = join(await mkdtemp(join(tmpdir(), 'heddle-worker-')), 'worker.mjs')
    const input = fileURLToPath(new URL('cache_worker.ts', import.meta.url))
    await build({ input, platform: 'node', logLevel: 'silent', output: { file: program, codeSplitting: false } })
  })
  afterAll(() => rm(dirname(program), { recursive: true }))
  const worker = (milliseconds = 300) => fork(program, [root, String(milliseconds)])

  test('eight at once, one of them killed at work: every entry is whole, and nobody waits for ever', async () => {
    // It works until it is killed, however long the others take to begin.
    const victim = worker(600_000)
    await once(victim, 'message')
    const others = Array.from({ length: 7 }, () => worker())
    const exits = others.map((child) => once(child, 'exit'))
    victim.kill('SIGKILL')
    for (const [code] of await Promise.all(exits)) expect(code).toBe(0)
    for (const key of ['a', 'b', 'c']) expect(await isWhole(join(root, key))).toBe(true)
    // The next sweep removes files of the killed process.
    expect((await unfinished()).length).toBe(1)
    await sweep([root], 1e9)
    expect(await unfinished()).toEqual([])
  })
})
