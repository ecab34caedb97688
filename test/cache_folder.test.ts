/** The folder that all projects of a user share: created for its owner only, and refused if others may write to it. */
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { cacheFolder, namedFolder } from '../src/cache_folder.js'
import { contentDigest, isOwn, recordOwn } from '../src/own_text.js'

let work: string

const at = (folder: string): string => cacheFolder({ HEDDLE_CACHE: folder })

beforeEach(() => {
  work = mkdtempSync(join(tmpdir(), 'heddle-cache-'))
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
  rmSync(work, { recursive: true, force: true })
})

test('it is created, with the folders above it, for its owner only', () => {
  const folder = join(work, 'a', 'cache')
  expect(at(folder)).toBe(folder)
  expect(statSync(folder).mode & 0o777).toBe(0o700)
})

test('it is used unchanged if only its owner can write to it', () => {
  const folder = join(work, 'read-by-all')
  mkdirSync(folder)
  chmodSync(folder, 0o755)
  expect(at(folder)).toBe(folder)
})

test.each([0o775, 0o777, 0o1777])('it is refused with mode %o', (mode) => {
  const folder = join(work, 'shared')
  mkdirSync(folder)
  chmodSync(folder, mode)
  const refused = { class: 'environment', code: 'cache.foreign', hint: expect.stringContaining(`chmod 700 ${folder}`) }
  expect(() => at(folder)).toThrow(expect.objectContaining(refused))
  chmodSync(folder, 0o700)
  expect(at(folder)).toBe(folder)
})

test('it is refused if it belongs to another user', () => {
  const folder = join(work, 'theirs')
  mkdirSync(folder)
  const me = process.geteuid?.() ?? 0
  // Root can change the owner of the folder; any other user is mocked as another one.
  if (me === 0) chownSync(folder, 4242, 4242)
  else vi.spyOn(process, 'geteuid').mockReturnValue(me + 1)
  expect(() => at(folder)).toThrow(
    expect.objectContaining({ code: 'cache.foreign', hint: expect.stringContaining('HEDDLE_CACHE') }),
  )
})

test('a path at which no folder can be created is refused, without endless retries', () => {
  expect(() => at('/proc/nope/cache')).toThrow(expect.objectContaining({ class: 'environment', code: 'cache.write' }))
})

test('a file is not a cache', () => {
  const file = join(work, 'file')
  writeFileSync(file, '')
  expect(() => at(file)).toThrow(expect.objectContaining({ code: 'cache.write', message: `cannot write ${file}: it is a file` }))
})

test('records in it belong to its user, and nothing else does', async () => {
  vi.stubEnv('HEDDLE_CACHE', join(work, 'cache'))
  const digest = contentDigest('a text')
  expect(isOwn(digest)).toBe(false)
  await recordOwn([digest])
  await recordOwn([digest])
  expect(isOwn(digest)).toBe(true)
  expect(isOwn(contentDigest('another'))).toBe(false)
  expect(isOwn('../own')).toBe(false)
})

test.each([
  ['linux', {}, '/home/me', '/home/me/.cache/heddle'],
  ['linux', { XDG_CACHE_HOME: '/data/cache' }, '/home/me', '/data/cache/heddle'],
  ['linux', { XDG_CACHE_HOME: 'cache' }, '/home/me', '/home/me/.cache/heddle'],
  ['darwin', {}, '/Users/me', '/Users/me/Library/Caches/heddle'],
  ['win32', { LOCALAPPDATA: 'D:\\Local' }, 'C:\\Users\\me', 'D:\\Local\\heddle\\Cache'],
  ['win32', { XDG_CACHE_HOME: '/data/cache' }, 'C:\\Users\\me', 'C:\\Users\\me\\AppData\\Local\\heddle\\Cache'],
] as const)('on %s with %j it is below %s: %s', (platform, env, home, folder) =>
  expect(namedFolder(env, platform, home)).toBe(folder),
)
