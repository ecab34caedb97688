/** Cache entries between runs are found by their inputs, never trusted if damaged, and limited in size. */
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { memoFolder, openMemo } from '../src/memo.js'

let root = ''
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'heddle-kept-'))
})
afterEach(async () => {
  await rm(memoFolder(root), { recursive: true, force: true })
  await rm(root, { recursive: true, force: true })
})

const files = async () => (await readdir(memoFolder(root))).map((name) => join(memoFolder(root), name))

/** Value found for the parts of a key, and true if it had to be computed. */
function ask(parts: readonly string[], value: unknown, limit?: number) {
  let made = false
  const found = openMemo(root, limit === undefined ? {} : { limit, every: 0 }).of('thing', parts, () => {
    made = true
    return value
  })
  return { found, made }
}

it('finds entries by their inputs only', () => {
  const shared = { kind: 'const', value: -0 }
  const value = { list: [shared, shared], byName: new Map([['a', undefined]]) }
  expect(ask(['a', 'b'], value).made).toBe(true)
  const again = ask(['a', 'b'], 'another')
  expect(again).toEqual({ found: value, made: false })
  expect(ask(['ab'], 1).made).toBe(true)
  expect(ask(['a', 'c'], 1).made).toBe(true)
})

it('recomputes damaged entries, whatever the damage', async () => {
  for (const damage of [(b: Buffer) => b.fill(7, 40, 41), (b: Buffer) => b.subarray(0, 20), () => Buffer.alloc(0)]) {
    ask(['damaged'], { x: [1, 2, 3] })
    const [file = ''] = await files()
    await writeFile(file, damage(await readFile(file)))
    expect(ask(['damaged'], { x: [1, 2, 3] })).toEqual({ found: { x: [1, 2, 3] }, made: true })
    expect(ask(['damaged'], 0).made).toBe(false)
  }
})

it('does not mistake one intact entry for another', async () => {
  ask(['right'], 1)
  const [right = ''] = await files()
  ask(['wrong'], 2)
  const wrong = (await files()).find((file) => file !== right) ?? ''
  await writeFile(right, await readFile(wrong))
  expect(ask(['right'], 3)).toEqual({ found: 3, made: true })
})

it('stores nothing that cannot be serialised, and rethrows exceptions of the computation', () => {
  expect(ask(['function'], () => 1).made).toBe(true)
  expect(ask(['function'], 2)).toEqual({ found: 2, made: true })
  const failing = () =>
    openMemo(root).of('thing', ['failing'], () => {
      throw new Error('refused')
    })
  expect(failing).toThrow('refused')
  expect(ask(['failing'], 3)).toEqual({ found: 3, made: true })
})

it('evicts the least recently used entries', async () => {
  const large = 'x'.repeat(1000)
  for (const name of ['a', 'b', 'c', 'd']) ask([name], `${name}${large}`)
  for (const file of await files()) {
    const name = (await readFile(file, 'latin1')).match(/([a-d])x/)?.[1] ?? ''
    const used = new Date(2020, 0, { a: 4, b: 1, c: 2, d: 3 }[name])
    await utimes(file, used, used)
  }
  ask(['e'], large, 3000)
  const left = await Promise.all((await files()).map(async (file) => (await stat(file)).size))
  expect(left.reduce((sum, size) => sum + size, 0)).toBeLessThan(3000)
  expect(ask(['a'], 0).made).toBe(false)
  expect(ask(['b'], 0).made).toBe(true)
})

it('can be turned off', () => {
  process.env.HEDDLE_KEPT = 'off'
  try {
    ask(['off'], 1)
    expect(ask(['off'], 2)).toEqual({ found: 2, made: true })
  } finally {
    delete process.env.HEDDLE_KEPT
  }
})

it('stores nothing if a file has the name of its folder', async () => {
  await mkdir(dirname(memoFolder(root)), { recursive: true })
  await writeFile(memoFolder(root), '')
  expect(ask(['a'], 1)).toEqual({ found: 1, made: true })
  expect(ask(['a'], 2)).toEqual({ found: 2, made: true })
})

it('disappears with its project, and is not stored inside it', async () => {
  ask(['a'], 1)
  expect(await readdir(root)).toEqual([])
  const gone = memoFolder(root)
  expect(existsSync(gone)).toBe(true)
  await rm(root, { recursive: true })
  root = await mkdtemp(join(tmpdir(), 'heddle-kept-'))
  ask(['a'], 1)
  expect(existsSync(gone)).toBe(false)
})
