/** The stamp of a native build is valid as long as its outputs are unchanged. */
import { mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readStamp, writeStamp } from '../../src/toolchain/native_stamp.js'

let out: string
const stamp = { sources: 's', key: 'k', cuda: false }
const release = (name: string): string => join(out, 'Release', name)

beforeEach(async () => {
  out = await mkdtemp(join(tmpdir(), 'heddle-native-'))
  await mkdir(join(out, 'Release'))
  await writeFile(release('heddle.node'), 'addon')
  await writeFile(release('libheddle_simt.so'), 'plugin')
  await writeStamp(out, stamp, ['heddle.node', 'libheddle_simt.so', 'libheddle_cuda.so'])
})
afterEach(() => rm(out, { recursive: true }))

test('is valid for files as they were built, and for those that were not built', async () => {
  const read = await readStamp(out)
  expect(read).toMatchObject(stamp)
  expect(Object.keys(read?.files ?? {})).toEqual(['heddle.node', 'libheddle_simt.so'])
})

test.each([
  ['an empty file', () => truncate(release('heddle.node'), 0)],
  ['a changed one', () => writeFile(release('libheddle_simt.so'), 'Plugin')],
  ['a missing one', () => rm(release('heddle.node'))],
  ['no stamp', () => rm(join(out, 'heddle-build.json'))],
  ['half a stamp', () => truncate(join(out, 'heddle-build.json'), 20)],
  ['a stamp without files', () => writeFile(join(out, 'heddle-build.json'), JSON.stringify(stamp))],
])('does not hold for %s', async (_, damage) => {
  await damage()
  expect(await readStamp(out)).toBeUndefined()
})
