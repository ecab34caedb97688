/** New projects: complete, free of errors, and nothing left of one that cannot be made. */
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { init, projectTemplates } from '../../src/cli/init.js'
import { readDeclarations, readSpecsOrThrow } from '../../src/frontend/index.js'

let root = ''
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'heddle-init-'))
})
afterEach(() => rm(root, { recursive: true, force: true }))

const context = () => ({ root, signal: new AbortController().signal, log: () => undefined })

describe('a new project', () => {
  it.each(projectTemplates)('with a template for %s compiles', async (template) => {
    const { folder, files } = await init('my-kernels', { template, install: false }, context())
    expect(files).toEqual(['.gitignore', 'README.md', 'main.ts', 'package.json', 'specs/index.ts', 'tsconfig.json'])
    const texts = await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8')))
    for (const text of texts) expect(text).not.toMatch(/\{\{|undefined/)
    const { name, dependencies } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
    expect([name, dependencies]).toEqual(['my-kernels', { heddle: `file:${process.cwd()}` }])
    await mkdir(join(folder, 'node_modules'))
    await symlink(process.cwd(), join(folder, 'node_modules', 'heddle'))
    const { kernels } = readSpecsOrThrow({ root: folder, specs: ['specs'] })
    const { graphs, plans, programs } = await readDeclarations(folder)
    const counts = [kernels, Object.keys(graphs), plans, programs].map(({ length }) => length)
    expect(counts).toEqual({ op: [1, 0, 0, 0], graph: [2, 1, 1, 0], model: [1, 1, 1, 1] }[template])
  })

  it('is refused with its path if it cannot be written', async () => {
    await writeFile(join(root, 'file'), '')
    const refused = init('file/inner', { install: false }, context())
    await expect(refused).rejects.toMatchObject({ code: 'cache.write', message: expect.stringContaining(join(root, 'file')) })
  })

  it('creates a separate folder', async () => {
    await mkdir(join(root, 'taken'))
    await writeFile(join(root, 'taken', 'mine.txt'), 'mine')
    await expect(init('taken', { install: false }, context())).rejects.toMatchObject({ code: 'init.folder' })
    expect(await readdir(join(root, 'taken'))).toEqual(['mine.txt'])
  })

  it.each(['My Kernels', '.', 'a/..', '-x', 'ä'])('is not called %s', async (name) => {
    const given = name === '.' || name === 'a/..' ? { ...context(), root: '/' } : context()
    await expect(init(name, { install: false }, given)).rejects.toMatchObject({ code: 'init.name' })
  })

  it('leaves no file if npm install fails', async () => {
    const { PATH } = process.env
    const tools = join(root, 'tools')
    await mkdir(tools)
    await writeFile(join(tools, 'npm'), '#!/bin/sh\necho no network >&2\nexit 1\n', { mode: 0o755 })
    process.env.PATH = `${tools}:${PATH}`
    try {
      await expect(init('mine', {}, context())).rejects.toMatchObject({ code: 'init.install', message: /no network/ })
    } finally {
      process.env.PATH = PATH
    }
    expect(await readdir(root)).toEqual(['tools'])
  })
})
