/** Temporary folders exist as long as their task: leftovers of killed processes are removed, and nothing else. */
import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { writeGenerated } from '../src/emit/write.js'
import { makeScratch } from '../src/scratch.js'

let root: string
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'heddle-scratch-'))
})
afterEach(() => rm(root, { recursive: true }))

/** The number of a process that has ended. */
const ended = spawnSync(process.execPath, ['--version']).pid
const later = Date.now() + 2 * 3_600_000

/** The folders that are left once another of the kind was made. */
async function left(names: readonly string[], now: number): Promise<readonly string[]> {
  for (const name of names) await mkdir(join(root, '.heddle', name, 'specs'), { recursive: true })
  const made = await makeScratch(root, 'check', now)
  return (await readdir(join(root, '.heddle'))).filter((name) => name !== basename(made)).sort()
}

test('old files of a killed process are removed', async () => {
  expect(await left([`check-${ended}-abc`], later)).toEqual([])
})

test('young files, and files of a living process, of another kind or without an owner stay', async () => {
  const young = [`check-${ended}-abc`]
  expect(await left(young, Date.now())).toEqual(young)
  await rm(join(root, '.heddle'), { recursive: true })
  const others = [`bodies-${ended}-abc`, `check-${process.ppid}-abc`, 'check-notes', 'kept']
  expect(await left(others, later)).toEqual([...others].sort())
})

test('an unwritable project is reported with the path', async () => {
  await writeFile(join(root, '.heddle'), '')
  await expect(makeScratch(root, 'check')).rejects.toMatchObject({
    code: 'cache.write',
    message: expect.stringContaining(`cannot write ${join(root, '.heddle')}: it is a file`),
  })
  await writeFile(join(root, 'generated'), '')
  await expect(writeGenerated(join(root, 'generated', 'inner'), new Map([['a.cu', '']]))).rejects.toMatchObject({
    code: 'cache.write',
    message: expect.stringContaining(join('inner', 'a.cu')),
  })
})
