import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { isLocked, locked } from '../../src/toolchain/lock.js'

let path: string

beforeEach(async () => {
  path = join(await mkdtemp(join(tmpdir(), 'heddle-lock-')), 'sub', 'build.lock')
})

afterEach(() => rm(join(path, '..', '..'), { recursive: true }))

test('holders follow each other', async () => {
  const events: string[] = []
  const work = (name: string) =>
    locked(path, {}, async () => {
      events.push(`${name} in`)
      await sleep(1)
      events.push(`${name} out`)
    })
  await Promise.all([work('a'), work('b')])
  expect(events).toHaveLength(4)
  expect(events[0]?.charAt(0)).toBe(events[1]?.charAt(0))
  expect(events[2]?.charAt(0)).toBe(events[3]?.charAt(0))
  expect(existsSync(path)).toBe(false)
})

test('a failure releases the lock', async () => {
  await expect(locked(path, {}, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
  expect(existsSync(path)).toBe(false)
})

test('is held until the work is done', async () => {
  await locked(path, {}, async () => expect(await isLocked(path)).toBe(true))
  expect(await isLocked(path)).toBe(false)
})

test('the lock of a holder without a sign of life is taken over', async () => {
  await mkdir(path, { recursive: true })
  const longAgo = new Date(Date.now() - 60_000)
  await utimes(path, longAgo, longAgo)
  expect(await locked(path, {}, async () => 'done')).toBe('done')
})

test('a fresh lock is waited for, and the wait is reported once', async () => {
  await mkdir(path, { recursive: true })
  let waits = 0
  const done = locked(path, { onWait: () => waits++ }, async () => 'done')
  await sleep(300)
  expect(waits).toBe(1)
  await rm(path, { recursive: true })
  expect(await done).toBe('done')
})

test('a file in the place of a lock, as older versions left, is removed', async () => {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, '')
  const longAgo = new Date(Date.now() - 60_000)
  await utimes(path, longAgo, longAgo)
  expect(await locked(path, {}, async () => 'done')).toBe('done')
})

test('waiting can be cancelled', async () => {
  const cancel = new AbortController()
  await locked(path, {}, async () => {
    const waiting = locked(path, { signal: cancel.signal }, async () => {})
    cancel.abort(new Error('stop'))
    await expect(waiting).rejects.toThrow('stop')
  })
})

test('an unwritable path is reported', async () => {
  await writeFile(dirname(path), 'a file')
  await expect(locked(path, {}, async () => {})).rejects.toMatchObject({ code: 'cache.write', exitCode: 3 })
})
