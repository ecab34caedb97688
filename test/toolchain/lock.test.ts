import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { locked } from '../../src/toolchain/lock.js'

let path: string

beforeEach(async () => {
  path = join(await mkdtemp(join(tmpdir(), 'heddle-lock-')), 'sub', 'build.lock')
})

afterEach(() => rm(join(path, '..', '..'), { recursive: true }))

test('holders follow each other', async () => {
  const events: string[] = []
  const work = (name: string) =>
    locked(path, undefined, async () => {
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
  await expect(locked(path, undefined, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
  expect(existsSync(path)).toBe(false)
})

test('the lock of a dead process is taken over', async () => {
  await locked(path, undefined, async () => {})
  // No process has this id: it is above the largest one Linux hands out.
  await writeFile(path, String(2 ** 22 + 1))
  expect(await locked(path, undefined, async () => 'done')).toBe('done')
})

test('waiting can be cancelled', async () => {
  const cancel = new AbortController()
  await locked(path, undefined, async () => {
    cancel.abort(new Error('stop'))
    await expect(locked(path, cancel.signal, async () => {})).rejects.toThrow('stop')
  })
})
