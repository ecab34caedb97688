/** Repeated runs of an export on CUDA, with a stand-in for CUDA that only records its calls: no GPU is needed. */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Check, checks, status, type Workshop, workshop } from './fixtures.js'

const folder = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))
let shop: Workshop
let found: ReadonlyMap<string, Check>

beforeAll(async () => {
  shop = await workshop()
  const includes = ['test/native/fixtures/replays', 'native/export'].flatMap((path) => ['-I', folder(path)])
  found = await checks(await shop.program('replays', ['replays.cpp'], includes), [])
})
afterAll(() => shop.remove())

const said = (name: string): string => found.get(name)?.message ?? expect.fail(`nothing is said of ${name}`)

test('the second one is recorded on another stream, and the third only launched', () => {
  expect(said('first')).toBe('run7')
  expect(said('second')).toBe('stream101 begin101 run101 end101 graph1 launch1 on7')
  expect(said('third')).toBe('launch1 on7')
})

test('runs of other sizes, addresses or streams have separate graphs, and each stream one recorder', () => {
  expect(said('other key')).toBe('run7')
  expect(said('other stream')).toBe('run8')
  expect(said('other stream again')).toBe('stream102 begin102 run102 end102 graph2 launch2 on8')
  expect(said('other key again')).toBe('begin101 run101 end101 graph3 launch3 on7')
})

test('a stream that the caller captures gets the launches themselves', () => {
  expect(said('captured by the caller')).toBe('run7')
  expect(said('kept meanwhile')).toBe('launch1 on7')
})

test('a failure during recording ends the recording, is reported, and may be retried', () => {
  expect(found.get('refused while it is recorded')).toMatchObject({ status: status.invalid, message: 'begin101 run101 end101' })
  expect(found.get('not made')?.status).not.toBe(status.ok)
  expect(said('made later')).toBe('begin101 run101 end101 graph4 launch4 on7')
})

test('sixteen runs are cached, the latest ones', () => {
  expect(said('many others').split(' ')).toEqual(expect.arrayContaining(['-graph1', '-graph2', '-graph3']))
  expect(said('many others')).not.toContain('-graph4')
  expect(said('kept among many')).toBe('launch4 on7')
  expect(said('forgotten')).toBe('run7')
  expect(said('the end')).toBe('-graph4 -stream101 -stream102')
})
