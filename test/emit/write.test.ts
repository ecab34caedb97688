import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { recordFile, writeGenerated } from '../../src/emit/write.js'

let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'heddle-write-'))
})
afterEach(() => rm(dir, { recursive: true }))

const files = new Map([
  ['cuda/a.cu', 'a\n'],
  ['manifest.json', '{}\n'],
])
const write = async (options = {}) => (await writeGenerated(join(dir, 'generated'), files, options)).changed
const listing = async () => (await readdir(join(dir, 'generated'), { recursive: true })).sort()

describe('writing generated files', () => {
  it('creates the folder and reports what it wrote', async () => {
    expect(await write()).toEqual(['cuda/a.cu', 'manifest.json'])
    expect(await listing()).toEqual(['cuda', 'cuda/a.cu', 'manifest.json'])
  })

  it('leaves right files untouched', async () => {
    await write()
    const { mtimeMs } = await stat(join(dir, 'generated/cuda/a.cu'))
    expect(await write()).toEqual([])
    expect((await stat(join(dir, 'generated/cuda/a.cu'))).mtimeMs).toBe(mtimeMs)
  })

  it('removes stale files and repairs changed ones', async () => {
    await write()
    await mkdir(join(dir, 'generated/old'))
    await writeFile(join(dir, 'generated/old/b.cu'), 'b\n')
    await writeFile(join(dir, 'generated/cuda/a.cu'), 'edited\n')
    expect(await write()).toEqual(['cuda/a.cu', 'old/b.cu'])
    expect(await readFile(join(dir, 'generated/cuda/a.cu'), 'utf8')).toBe('a\n')
    expect(await listing()).not.toContain('old/b.cu')
  })

  it('leaves what nvcc made of the text', async () => {
    await write()
    await writeFile(join(dir, 'generated', recordFile), '{}\n')
    expect(await write({ check: true })).toEqual([])
    expect(await write()).toEqual([])
    expect(await listing()).toContain(recordFile)
  })

  it('only compares under check', async () => {
    expect(await write({ check: true })).toEqual(['cuda/a.cu', 'manifest.json'])
    await expect(listing()).rejects.toThrow('ENOENT')
    await write()
    expect(await write({ check: true })).toEqual([])
    await writeFile(join(dir, 'generated/cuda/a.cu'), 'a')
    expect(await write({ check: true })).toEqual(['cuda/a.cu'])
    expect(await readFile(join(dir, 'generated/cuda/a.cu'), 'utf8')).toBe('a')
  })
})
