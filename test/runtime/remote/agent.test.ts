/** Parts of the agent: frames, the order of requests that wait for bytes, the store of bytes, and the lock. */
import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { holderOf, takeLock } from '../../../src/runtime/remote/agent_lock.js'
import { type Numbered, requestQueue } from '../../../src/runtime/remote/agent_queue.js'
import { openStore, type Store, sweep } from '../../../src/runtime/remote/agent_store.js'
import { isOfLink, repliedError } from '../../../src/runtime/remote/failures.js'
import { encodeFrame, frameReader } from '../../../src/runtime/remote/frames.js'
import { localParts } from '../../../src/runtime/remote/parts.js'
import { changesOf, digestOf } from '../../../src/runtime/remote/protocol.js'

const folders: string[] = []
const folder = (): string => {
  const made = mkdtempSync(join(tmpdir(), 'heddle-agent-'))
  folders.push(made)
  return made
}
afterEach(() => {
  for (const each of folders.splice(0)) rmSync(each, { recursive: true })
})

describe('frames', () => {
  const values = [{ id: 1, data: Uint8Array.of(1, 2, 3) }, -0, Number.POSITIVE_INFINITY, undefined, 'é']

  it.each([1, 3, 1000])('arrive as they were in pieces of %i bytes', (size) => {
    const stream = Buffer.concat(values.map(encodeFrame))
    const found: unknown[] = []
    const read = frameReader((value) => found.push(value))
    for (let at = 0; at < stream.length; at += size) read(stream.subarray(at, at + size))
    expect(found).toEqual(values)
    expect(Object.is(found[1], -0)).toBe(true)
  })

  it('are bounded', () => {
    const read = frameReader(() => undefined)
    expect(() => read(Buffer.from('Welcome to gpu'))).toThrow('a frame of')
  })
})

describe('requests that name bytes', () => {
  const first = Uint8Array.of(1, 2, 3)
  const second = Uint8Array.of(4, 5)
  const write = (id: number, data: Uint8Array): Numbered => ({
    id,
    request: { op: 'write', buffer: 1, offset: 0, data: digestOf(data) },
  })
  const read: Numbered = { id: 9, request: { op: 'read', buffer: 1, offset: 0, bytes: 1 } }
  const give = (data: Uint8Array, digest = digestOf(data)): Numbered => ({ id: 0, request: { op: 'give', digest, data } })

  function queue(store: Store) {
    const events: string[] = []
    const receive = requestQueue({
      store: () => store,
      ask: (id, needs) => events.push(`ask ${id} ${needs.length}`),
      handle: ({ id }, given) => events.push(`handle ${id} ${[...given.values()].map((data) => data.join('')).join()}`),
    })
    return { events, receive }
  }

  it('wait for them, and all later ones with them', () => {
    const store = openStore(folder())
    const { events, receive } = queue(store)
    for (const each of [write(1, first), read, write(2, second)]) receive(each)
    expect(events).toEqual(['ask 1 1'])
    receive(give(first))
    expect(events.slice(1)).toEqual(['handle 1 123', 'handle 9 ', 'ask 2 1'])
    receive(give(second))
    expect(events.slice(4)).toEqual(['handle 2 45'])
    // A later link finds them in the store; bytes that were sent ahead are not asked for.
    const later = queue(store)
    later.receive(write(3, first))
    const ahead = queue(openStore(folder()))
    for (const each of [give(second), write(4, second)]) ahead.receive(each)
    expect([later.events, ahead.events]).toEqual([['handle 3 123'], ['handle 4 45']])
  })

  it('are refused where other bytes come', () => {
    const { events, receive } = queue(openStore(folder()))
    receive(write(1, first))
    receive(give(second, digestOf(first)))
    expect(events).toEqual(['ask 1 1', 'handle 1 '])
  })
})

describe('the store', () => {
  it('drops damaged files, and takes names of digests only', () => {
    const where = folder()
    const store = openStore(where)
    const data = Uint8Array.of(1, 2, 3)
    const digest = digestOf(data)
    writeFileSync(store.add(digest, data), 'other')
    expect(store.read(digest)).toBeUndefined()
    expect(readdirSync(where)).toEqual([])
    store.add(digest, data)
    expect(Uint8Array.from(store.read(digest) ?? [])).toEqual(data)
    expect(store.read('../../../../../etc/passwd')).toBeUndefined()
  })

  it('removes what is old or too much, the least recently used first', () => {
    const where = folder()
    const now = Date.now()
    for (const [name, days] of [
      ['old', 40],
      ['a', 3],
      ['b', 2],
      ['c', 1],
    ] as const) {
      writeFileSync(join(where, name), Buffer.alloc(8192))
      utimesSync(join(where, name), new Date(), new Date(now - days * 24 * 3600 * 1000))
    }
    sweep(where, 4 * 8192, now)
    expect(readdirSync(where)).toEqual(['a', 'b', 'c'])
    sweep(where, 2 * 8192, now)
    expect(readdirSync(where)).toEqual(['b', 'c'])
  })
})

describe('the lock', () => {
  it('says who has it, and refuses a second', async () => {
    const name = `test-${process.pid}`
    expect(await holderOf(name)).toBeUndefined()
    expect(await takeLock(name, 'me: check')).toBeUndefined()
    expect(await takeLock(name, 'you: bench')).toBe('me: check')
  })
})

describe('errors of replies', () => {
  it('are of the cache, or keep the code of the addon', () => {
    expect(repliedError('gpu', { message: 'ENOSPC: no space left', code: 'ENOSPC' })).toMatchObject({
      code: 'remote.disk',
      hint: expect.stringContaining('HEDDLE_CACHE'),
    })
    expect(repliedError('gpu', { message: 'EROFS: read-only', code: 'EROFS' })).toMatchObject({ code: 'remote.cache' })
    const own = repliedError('gpu', { message: 'a fault', code: 'FAULT' })
    expect([own, isOfLink(own)]).toMatchObject([{ code: 'FAULT', message: 'a fault' }, false])
  })
})

it('a package without the agent is refused', async () => {
  await expect(localParts(folder())).rejects.toMatchObject({
    code: 'remote.agent',
    hint: 'install heddle again; in a checkout, npm run build writes it',
  })
})

it('changes of equal bytes are zeros, and give the bytes back', () => {
  const [before, after] = [Uint8Array.of(1, 2, 3), Uint8Array.of(1, 9, 3)]
  expect([...changesOf(before, after)]).toEqual([0, 11, 0])
  expect(changesOf(before, changesOf(before, after))).toEqual(after)
})
