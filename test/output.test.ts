/** Files that heddle writes for a user: folders with a list, and named files. Foreign files stay, and no partial output remains. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { namedFile } from '../src/output.js'
import { listFile, type Made, writeListed } from '../src/output_listed.js'

let root = ''
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'heddle-output-'))
})
afterEach(() => rm(root, { recursive: true, force: true }))

const at = (path: string): string => join(root, path)
const text = (path: string): Promise<string> => readFile(at(path), 'utf8')
const write = (files: Record<string, Made>): Promise<readonly string[]> =>
  writeListed(at('out'), new Map(Object.entries(files)), { root })
const listing = async () => (await readdir(at('out'), { recursive: true })).sort()
const weights = (content: string) => (path: string) => writeFile(path, content)

describe('a folder with a list', () => {
  it('is written once: an up-to-date one is not touched', async () => {
    const files = { 'a/b.txt': 'b\n', 'c.bin': Uint8Array.of(1, 0, 2), big: weights('numbers') }
    expect(await write(files)).toEqual(['a/b.txt', 'big', 'c.bin'])
    const times = () =>
      Promise.all(['a/b.txt', 'big', 'c.bin', listFile].map(async (path) => (await stat(at(`out/${path}`))).mtimeMs))
    const before = await times()
    expect(await write(files)).toEqual([])
    expect(await times()).toEqual(before)
    expect(await listing()).toEqual(['a', 'a/b.txt', 'big', 'c.bin', listFile])
  })

  it('loses obsolete files, and no foreign ones', async () => {
    await write({ 'a/b.txt': 'b\n', 'a/edited.txt': 'b\n', 'c/d.txt': 'd\n' })
    await writeFile(at('out/README.md'), 'mine')
    await writeFile(at('out/a/edited.txt'), 'mine')
    expect(await write({ 'e.txt': 'e\n' })).toEqual(['a/b.txt', 'c/d.txt', 'e.txt'])
    expect(await listing()).toEqual(['README.md', 'a', 'a/edited.txt', 'e.txt', listFile])
    await expect(write({ 'README.md': 'ours' })).rejects.toMatchObject({ code: 'output.file' })
    await expect(write({ 'a/edited.txt': 'ours' })).rejects.toMatchObject({ code: 'output.file' })
    expect([await text('out/README.md'), await text('out/a/edited.txt')]).toEqual(['mine', 'mine'])
    expect(await listing()).toContain('e.txt')
  })

  it('of others is refused, and so is a list that names files elsewhere', async () => {
    await mkdir(at('out'))
    await writeFile(at('out/README.md'), 'mine')
    await expect(write({ a: 'a' })).rejects.toMatchObject({
      code: 'output.folder',
      message: expect.stringContaining('README.md'),
    })
    await writeFile(at('mine'), '')
    await writeFile(at(`out/${listFile}`), JSON.stringify({ version: 1, files: { '../mine': ['0'.repeat(64)] } }))
    await expect(write({ a: 'a' })).rejects.toMatchObject({ code: 'output.folder' })
    expect((await readdir(root)).sort()).toEqual(['mine', 'out'])
  })

  it('accepts Windows line endings in its files', async () => {
    await write({ 'a.txt': 'a\nb\n', 'old.txt': 'c\nd\n' })
    for (const name of ['a.txt', 'old.txt'])
      await writeFile(at(`out/${name}`), (await text(`out/${name}`)).replaceAll('\n', '\r\n'))
    expect(await write({ 'a.txt': 'a\nb\n' })).toEqual(['old.txt'])
  })

  it('is unchanged if it cannot be filled, and not created if it did not exist', async () => {
    const failing = { 'a.txt': 'a', big: () => Promise.reject(new Error('no weights')) }
    await expect(write(failing)).rejects.toThrow('no weights')
    expect(await readdir(at('out'))).toEqual([])
    await write({ 'a.txt': 'before', 'b/c': 'c' })
    const before = await text(`out/${listFile}`)
    await expect(write(failing)).rejects.toThrow('no weights')
    expect([await text('out/a.txt'), await text(`out/${listFile}`), (await listing()).length]).toEqual(['before', before, 4])
    // A folder at the path of an output file is detected before anything is written.
    await mkdir(at('out/d'))
    await expect(write({ 'a.txt': 'after', d: 'd' })).rejects.toMatchObject({ code: 'output.file' })
    expect(await text('out/a.txt')).toBe('before')
  })

  it('continues after a killed process', async () => {
    await write({ 'a.txt': 'a', big: weights('one') })
    await writeFile(at('out/big.999999999.tmp'), 'half')
    expect(await write({ 'a.txt': 'b', big: weights('two') })).toEqual(['a.txt', 'big'])
    expect(await listing()).toEqual(['a.txt', 'big', listFile])
    // Killed between two files: the list names both digests.
    const list = JSON.parse(await text(`out/${listFile}`))
    await write({ 'a.txt': 'c', big: weights('two') })
    const later = JSON.parse(await text(`out/${listFile}`))
    list.files['a.txt'].push(...later.files['a.txt'])
    await writeFile(at(`out/${listFile}`), JSON.stringify(list))
    expect(await write({ 'a.txt': 'd', big: weights('two') })).toEqual(['a.txt'])
  })
})

describe('a file that was named', () => {
  it('is replaced as a whole, also through a link', async () => {
    await writeFile(at('a'), 'old')
    await symlink(at('a'), at('link'))
    const put = await namedFile(at('link'))
    await put('new')
    expect([await text('a'), (await readdir(root)).sort()]).toEqual(['new', ['a', 'link']])
  })

  it.each([
    ['a folder', 'folder', 'it is a folder'],
    ['nowhere', 'no/such/file', 'no such file'],
    ['below a file', 'file/inner', 'not a directory'],
  ])('is refused before the work: %s', async (_, path, said) => {
    await mkdir(at('folder'))
    await writeFile(at('file'), '')
    const refused = { code: 'output.write', exitCode: 2, message: expect.stringContaining(said) }
    await expect(namedFile(at(path))).rejects.toMatchObject(refused)
    expect((await readdir(root)).sort()).toEqual(['file', 'folder'])
  })

  it('is written to and not replaced if it is a device or a FIFO', async () => {
    await (await namedFile('/dev/null'))('gone')
    expect((await stat('/dev/null')).isCharacterDevice()).toBe(true)
    await promisify(execFile)('mkfifo', [at('pipe')])
    const read = readFile(at('pipe'), 'utf8')
    await (await namedFile(at('pipe')))('through')
    expect(await read).toBe('through')
    expect((await stat(at('pipe'))).isFIFO()).toBe(true)
  })
})
